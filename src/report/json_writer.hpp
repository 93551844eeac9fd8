#pragma once

#include "finch/base/enum_words.hpp"
#include "finch/search/gene.hpp"
#include "finch/search/individual.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <string_view>
#include <vector>

namespace finch::report {

/// Writes JSON. NaN and Infinity stand as such, as Python reads them.
class Json {
public:
    using Writer = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                                     rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>;

    void begin() { writer_.StartObject(); }
    void begin(std::string_view key) {
        name(key);
        begin();
    }
    void end() { writer_.EndObject(); }
    void begin_list(std::string_view key) {
        name(key);
        writer_.StartArray();
    }
    void end_list() { writer_.EndArray(); }

    void value(double number) { writer_.Double(number); }
    void value(std::int64_t number) { writer_.Int64(number); }
    void value(std::int32_t number) { writer_.Int(number); }
    void value(std::uint32_t number) { writer_.Uint(number); }
    void value(bool claim) { writer_.Bool(claim); }
    void value(std::string_view text) { writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size())); }
    void value(const char* text) { value(std::string_view(text)); }
    void null(std::string_view key) {
        name(key);
        writer_.Null();
    }
    template <class T>
    void member(std::string_view key, const T& what) {
        name(key);
        value(what);
    }
    /// An object of the active genes, each value as the kind that it is.
    void genes(std::string_view key, const search::Space& space, const search::Genome& genome) {
        begin(key);
        const std::vector<bool> active = search::active_genes(space, genome);
        for (std::size_t i = 0; i < space.size(); ++i) {
            if (active[i]) {
                gene(space.genes[i], genome[i]);
            }
        }
        end();
    }

    /// What was written since the last call.
    [[nodiscard]] std::string take() {
        std::string text(buffer_.GetString(), buffer_.GetSize());
        buffer_.Clear();
        writer_.Reset(buffer_);
        return text;
    }

private:
    void gene(const search::Gene& gene, double what) {
        name(gene.name);
        if (std::holds_alternative<search::RealGene>(gene.kind)) {
            value(what);
        } else if (std::holds_alternative<search::IntGene>(gene.kind)) {
            value(static_cast<std::int64_t>(what));
        } else {
            const std::string text = search::value_text(gene, what);
            std::get<search::ChoiceGene>(gene.kind).is_number
                ? writer_.RawValue(text.data(), text.size(), rapidjson::kNumberType)
                : writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
        }
    }
    void name(std::string_view key) { writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size())); }

    rapidjson::StringBuffer buffer_;
    Writer writer_{buffer_};
};

}  // namespace finch::report
