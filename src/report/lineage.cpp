#include "finch/base/format.hpp"
#include "finch/report/export.hpp"

#include "population_of.hpp"

#include <string>

namespace finch::report {
namespace {

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            default:
                safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no others
        }
    }
    return safe;
}

std::string_view kind_of(const search::Gene& gene) {
    return std::holds_alternative<search::RealGene>(gene.kind)  ? "double"
           : std::holds_alternative<search::IntGene>(gene.kind) ? "long"
                                                                : "string";
}

/// GraphML's numbers are XML Schema's.
std::string xml_double(double value) {
    return std::isnan(value) ? "NaN" : std::isinf(value) ? (value > 0 ? "INF" : "-INF") : fmt::format("{}", value);
}

void key(std::string& out, const char* of, std::string_view name, std::string_view type, std::string_view id = {}) {
    out += fmt::format("  <key id=\"{}\" for=\"{}\" attr.name=\"{}\" attr.type=\"{}\"/>\n",
                       escaped(std::string(id.empty() ? name : id)), of, escaped(std::string(name)), type);
}

std::string data(std::string_view key, const std::string& value) {
    return fmt::format("<data key=\"{}\">{}</data>", escaped(std::string(key)), escaped(value));
}

std::string gene_key(const search::Gene& gene) {
    return "gene." + gene.name;
}

void node(std::string& out, const search::Space& space, const search::Individual& one) {
    out += fmt::format("    <node id=\"{}\">", to_text(one.id));
    out += data("outcome", std::string(word(one.outcome))) + data("operator", std::string(word(one.bred_by)));
    out += data("loss", xml_double(one.loss)) + data("island", std::to_string(one.island));
    out += data("generation", std::to_string(one.generation)) + data("born", xml_double(one.born));
    for (std::size_t i = 0; i < space.size(); ++i) {
        out += data(gene_key(space.genes[i]), search::value_text(space.genes[i], one.genome.at(i)));
    }
    out += "</node>\n";
}

void edges(std::string& out, const search::Population& population, const search::Individual& one) {
    const auto edge = [&](search::Id from, const char* kind) {
        if (from != search::Id{} && population.find(from) != nullptr) {
            out += fmt::format("    <edge source=\"{}\" target=\"{}\">{}</edge>\n", to_text(from), to_text(one.id),
                               data("kind", kind));
        }
    };
    edge(one.parents[0], "parent");
    edge(one.parents[1], "parent");
    edge(one.inherited_from, "weights");
    edge(one.retry_of, "retry");
}

}  // namespace

std::string lineage(const store::Recovered& recovered, const search::Space& space, const Competition& competition) {
    const search::Population population = population_of(recovered);
    std::string out =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
    for (const char* const name : {"outcome", "operator"}) {
        key(out, "node", name, "string");
    }
    key(out, "node", competition.measure.title, "double", "loss");
    key(out, "node", "born", "double");
    for (const char* const name : {"island", "generation"}) {
        key(out, "node", name, "int");
    }
    for (const search::Gene& gene : space.genes) {
        key(out, "node", gene.name, kind_of(gene), gene_key(gene));
    }
    key(out, "edge", "kind", "string");
    out += "  <graph edgedefault=\"directed\">\n";
    for (const auto& [id, one] : population.individuals()) {
        node(out, space, one);
    }
    for (const auto& [id, one] : population.individuals()) {
        edges(out, population, one);
    }
    return out + "  </graph>\n</graphml>\n";
}

}  // namespace finch::report
