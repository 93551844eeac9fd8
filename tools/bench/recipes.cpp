// Measures the time that a genome costs before its training: bench_recipes [GENOMES]. The search space has 20 genes in
// model and training. Prints the seconds to parse the configuration, the microseconds to make one recipe, and the
// microseconds to make one recipe and plan its network.
#include "finch/base/clock.hpp"
#include "finch/base/random.hpp"
#include "finch/config/config.hpp"
#include "finch/nn/spec.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

/// Returns a configuration with 20 genes: three for each of six convolutions, the learning rate and its schedule.
std::string configuration() {
    std::string model = "model:\n";
    std::string space = "search:\n  space:\n    lr: {real: [1.0e-4, 1], scale: log}\n    gamma: {real: [0.5, 0.999]}\n";
    for (const char layer : {'a', 'b', 'c', 'd', 'e', 'f'}) {
        const std::string name(1, layer);
        model += "  - conv: {channels: $channels_" + name + ", activation: $act_" + name + ", repeat: $repeat_" + name +
                 "}\n";
        space += "    channels_" + name + ": {int: [2, 32]}\n    act_" + name +
                 ": {choice: [relu, sigmoid, tanh]}\n    repeat_" + name + ": {int: [0, 3]}\n";
    }
    return "training: {learning_rate: $lr, schedule: {step: {factor: $gamma}}}\n" + model +
           "  - flatten\n  - linear\n" + space;
}

}  // namespace

int main(int count, char** words) {
    using namespace finch;
    const int genomes = count > 1 ? std::atoi(words[1]) : 20000;
    const std::string text = configuration();
    const double begin = steady_seconds();
    const config::Config config = config::parse(text, "bench");
    const double parsed = steady_seconds();
    RandomStream random(1, Purpose::breeding);
    std::vector<search::Genome> all;
    for (int i = 0; i < genomes; ++i) {
        all.push_back(search::random_genome(config.space, random));
    }
    double checksum = 0;
    const double drawn = steady_seconds();
    for (const search::Genome& genome : all) {
        checksum += config.recipe(genome, 1).training.learning_rate.value_or(0);
    }
    const double made = steady_seconds();
    for (const search::Genome& genome : all) {
        checksum += static_cast<double>(nn::plan_model(config.recipe(genome, 1).model, {28, 28, 1}, 10, 16).parameters);
    }
    const double planned = steady_seconds();
    std::printf("parse %.6f s, recipe %.3f us, recipe and plan %.3f us (%g)\n", parsed - begin,
                (made - drawn) / genomes * 1e6, (planned - made) / genomes * 1e6, checksum);
}
