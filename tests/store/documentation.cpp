#include "finch/store/archive.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace finch;

namespace {

template <class Cell>
std::string type_name() {
    if constexpr (EnumWithWords<Cell>) {
        return "enum";
    } else if constexpr (std::same_as<Cell, std::string>) {
        return "text";
    } else if constexpr (std::same_as<Cell, double>) {
        return "float64";
    } else if constexpr (std::same_as<Cell, search::Id>) {
        return "uint64";
    } else {
        return (std::is_signed_v<Cell> ? "int" : "uint") + std::to_string(8 * sizeof(Cell));
    }
}

/// Returns the columns of the table of `Row` records as a Markdown table.
template <class Row>
std::string table_of(const std::string& name) {
    std::ostringstream text;
    text << "\n`" << name << "`\n\n| column | type | meaning |\n| --- | --- | --- |\n";
    const auto add = [&text]<class Struct>(const auto& self, const Struct&) -> void {
        for_each_field<Struct>([&](const auto& field) {
            using Member = std::remove_cvref_t<decltype(std::declval<Struct&>().*field.member)>;
            if constexpr (Recorded<Member>) {
                self(self, Member{});
            } else if constexpr (is_boxed<Member>) {
                self(self, typename Member::value_type{});
            } else if constexpr (is_std_array<Member>) {
                text << "| " << field.name << (std::tuple_size_v<Member> == 2 ? "_1, " : "_1 … ") << field.name << "_"
                     << std::tuple_size_v<Member> << " | " << type_name<typename Member::value_type>() << " | "
                     << field.meaning << " |\n";
            } else if constexpr (!is_list<Member>) {
                if (!field.stands_apart) {
                    text << "| " << field.name << " | " << type_name<Member>() << " | " << field.meaning << " |\n";
                }
            }
        });
    };
    add(add, Row{});
    return text.str();
}

std::string all_tables() {
    return table_of<search::Individual>("/individuals") + table_of<Epoch>("/curves") + table_of<Metric>("/metrics") +
           table_of<search::Home>("/homes") + table_of<search::WorkerReport>("/workers") +
           table_of<store::Start>("/starts") + table_of<search::Event>("/events") +
           table_of<store::ReusedRun>("/reused_runs") + "\n";
}

}  // namespace

TEST_CASE("docs/files.md describes every column as its field does (FINCH_UPDATE_DOCS=1 updates the file)") {
    const std::string begin = "<!-- columns: written by tests/store/documentation.cpp -->\n";
    const std::string end = "<!-- end of columns -->\n";
    const char* const source = std::getenv("FINCH_SOURCE_DIR");
    const std::string path = std::string(source == nullptr ? "." : source) + "/docs/files.md";
    std::ostringstream read;
    read << std::ifstream(path).rdbuf();
    const std::string text = read.str();
    const std::size_t from = text.find(begin);
    const std::size_t to = text.find(end);
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);

    if (std::getenv("FINCH_UPDATE_DOCS") != nullptr) {
        std::ofstream(path) << text.substr(0, from) + begin + all_tables() + text.substr(to);
    } else {
        CHECK(text.substr(from + begin.size(), to - from - begin.size()) == all_tables());
    }
}
