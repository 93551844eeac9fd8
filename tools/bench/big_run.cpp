// Quickly writes a run directory with a given number of individuals, as if a search of a function had written it.
//
//     bench_big_run CONFIG DIRECTORY INDIVIDUALS [EPOCHS] [WORKERS] [ISLANDS]
//
// `finch evolve CONFIG --run DIRECTORY` resumes this run. Each learning curve has EPOCHS lines; with 0 there are no
// curves.
#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/config/config.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

using namespace finch;

namespace {

struct Wanted {
    std::uint32_t individuals;
    int epochs;
    int workers;
    int islands;
};

search::Individual individual(std::uint32_t number, const Wanted& wanted, const search::Space& space) {
    RandomStream random(1, Purpose::test, number);
    const auto worker = number % static_cast<std::uint32_t>(wanted.workers);
    search::Individual one;
    one.id = search::Id::make(0, worker, number / static_cast<std::uint32_t>(wanted.workers) + 1);
    one.island = static_cast<std::int32_t>(worker) % wanted.islands;
    one.generation = static_cast<std::int32_t>(one.id.sequence());
    one.genome = search::random_genome(space, random);
    one.outcome = search::Outcome::evaluated;
    one.loss = 1e6 + random.uniform();
    one.accuracy = random.uniform();
    one.epochs = wanted.epochs;
    one.best_epoch = std::min(1, wanted.epochs);
    one.born = unix_seconds() - 1000;
    one.started = one.born;
    one.finished = one.born + 1;
    one.ranks = one.threads = 1;
    one.node = "node0001";
    one.device = "cpu";
    for (int epoch = 1; epoch <= wanted.epochs; ++epoch) {
        one.curve.push_back({epoch, 1, random.uniform(), 0.5, random.uniform(), 0.5, 0.001, 0.1});
    }
    return one;
}

void make(const char* path, const char* folder, const Wanted& wanted) {
    const config::Config config = config::load(path);
    const store::RunDirectory directory{folder};
    directory.create(wanted.workers);
    store::ArchiveFacts facts;
    facts.run = 1;
    facts.seed = config.seed;
    facts.config = config.text();
    facts.workers = wanted.workers;
    facts.islands = wanted.islands;
    facts.state = RunState::stopped;
    search::Population population(config.exchange.kind, wanted.islands);
    constexpr std::uint32_t at_once = 200'000;  // number of individuals that have their curves in memory
    std::uint32_t number = 0;
    do {
        const std::uint32_t end = std::min(wanted.individuals, number + at_once);
        for (; number < end; ++number) {
            population.merge(individual(number, wanted, config.space));
        }
        store::write_archive(directory.archive(), config.space, population, facts);
        for (const auto& [id, one] : population.individuals()) {
            population.forget_curve(id);
        }
    } while (number < wanted.individuals);
}

}  // namespace

int main(int count, char** words) {
    const auto number = [&](int place, int otherwise) { return count > place ? std::stoi(words[place]) : otherwise; };
    if (count < 4) {
        fmt::print(stderr, "bench_big_run CONFIG DIRECTORY INDIVIDUALS [EPOCHS] [WORKERS] [ISLANDS]\n");
        return 2;
    }
    try {
        make(words[1], words[2],
             {static_cast<std::uint32_t>(number(3, 0)), number(4, 0), std::max(1, number(5, 4)),
              std::max(1, number(6, 2))});
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
