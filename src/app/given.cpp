#include "finch/app/given.hpp"

#include "finch/base/error.hpp"
#include "finch/base/words.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace finch::app {
namespace {

class Given : public search::Propagator {
public:
    explicit Given(search::Genome genome) : genome_(std::move(genome)) {}
    search::Offspring breed(const search::Population&, int, RandomStream&) const override {
        return {genome_, {}, search::Operator::given};
    }

private:
    search::Genome genome_;
};

}  // namespace

std::unique_ptr<search::Propagator> make_given(const search::Space& space, const std::vector<std::string>& genes) {
    search::Genome genome(space.size(), std::numeric_limits<double>::quiet_NaN());
    for (const std::string& assignment : genes) {
        const std::size_t equals = assignment.find('=');
        const int index = space.index_of(assignment.substr(0, equals));
        if (equals == std::string::npos || index < 0) {
            std::vector<std::string> known;
            for (const search::Gene& gene : space.genes) {
                known.push_back(gene.name);
            }
            throw ConfigError("--gene " + assignment + ": expected NAME=VALUE with one of the genes " + join(known));
        }
        const auto at = static_cast<std::size_t>(index);
        genome[at] = search::parse_value(space.genes[at], assignment.substr(equals + 1));
    }
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < genome.size(); ++i) {
        if (std::isnan(genome[i])) {
            missing.push_back(space.genes[i].name);
        }
    }
    if (!missing.empty()) {
        throw ConfigError("--gene is missing for " + join(missing) + ": one individual needs a value for every gene");
    }
    return std::make_unique<Given>(std::move(genome));
}

void leave_at_once(int code) {
    std::fflush(nullptr);
    std::_Exit(code);
}

}  // namespace finch::app
