#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "sections.hpp"

namespace finch::config {

train::Recipe Config::recipe(const search::Genome& genome, std::uint64_t individual) const {
    if (!trains() || genome.size() != space.size()) {
        throw Error(fmt::format("no recipe: {} values for {} genes of a search that {}", genome.size(), space.size(),
                                trains() ? "trains" : "minimises a function"));
    }
    const Sections values = substitute(*sections_, space, genome);
    return {.seed = seed,
            .individual = individual,
            .objective = std::get<LossObjective>(objective),
            .training = read_training(values.training),
            .data = read_data(values.data),
            .model = read_model(values.model)};
}

std::string Config::fixed_text() const {
    return fixed_text_;
}

}  // namespace finch::config
