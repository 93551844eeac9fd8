#pragma once

#include "finch/base/random.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"

#include <bit>
#include <cmath>
#include <string>

/// Example individuals, spaces and facts for the tests of module store.
namespace finch::store::samples {

inline search::Space mnist_space() {
    return {{{"conv_layers", search::IntGene{2, 10}},
             {"activation", search::ChoiceGene{{"relu", "sigmoid", "tanh"}}},
             {"lr", search::RealGene{1e-4, 1e-2, search::Scale::log}},
             {"gamma", search::RealGene{0.5, 0.999, search::Scale::linear}}}};
}

/// Returns a NaN with unusual payload bits.
inline double strange_nan() {
    return std::bit_cast<double>(std::uint64_t{0xFFF8000000000ABC});
}

/// Returns an individual with all fields set. The values depend on `number` and include NaN, -0 and a denormal number.
inline search::Individual individual(std::uint32_t number, const search::Space& space) {
    RandomStream random(5, Purpose::test, number);
    search::Individual one;
    one.id = search::Id::make(number % 3, number % 5, number + 1);
    one.island = static_cast<std::int32_t>(number % 4);
    one.generation = static_cast<std::int32_t>(number / 4);
    one.bred_by = static_cast<search::Operator>(number % words_of(search::Operator{}).size());
    const bool has_parent = one.is_repeat() || number % 2 != 0;
    one.parents = {search::Id{has_parent ? number : 0U}, search::Id{random.bits()}};
    one.genome = search::random_genome(space, random);
    one.outcome = static_cast<search::Outcome>(number % words_of(search::Outcome{}).size());
    one.loss = number % 7 == 3 ? strange_nan() : random.normal();
    one.accuracy = number % 7 == 4 ? -0.0 : random.uniform();
    one.epochs = static_cast<std::int32_t>(number % 20);
    one.best_epoch = static_cast<std::int32_t>(number % 11);
    one.problem = number % 7 == 6 ? "rank 3: \"no memory\",\nreally " + std::string(number % 300, 'x') : "";
    one.born = 1.7e9 + number;
    one.started = number % 5 == 0 ? 5e-324 : one.born + 0.1;
    one.finished = one.born + 12.345;
    one.samples_per_second = 5e-324;
    one.training_seconds = 0.1 * number;
    one.joules = number % 6 == 0 ? search::Individual::not_measured : 0.3 * number;
    one.progress = random.uniform();
    one.attempt = {number % 3, static_cast<std::int32_t>(number % 4) - 1, static_cast<std::int32_t>(number % 2),
                   random.uniform()};
    one.breeding = {static_cast<std::int32_t>(number % 2), static_cast<std::int32_t>(number % 6) - 1, random.uniform(),
                    random.uniform(), random.uniform()};
    one.ranks = static_cast<std::int32_t>(number % 9);
    one.threads = 1 + static_cast<std::int32_t>(number % 3);
    one.batch_size = std::int64_t{1} << (number % 62);
    one.node = "node-" + std::to_string(number % 12);
    one.device = number % 2 == 0 ? "" : "CPU mit Größe";
    for (std::uint32_t epoch = 0; epoch < number % 4; ++epoch) {
        one.metrics.push_back({static_cast<std::int32_t>(epoch + 1), "top" + std::to_string(number), strange_nan()});
        one.curve.push_back({static_cast<std::int32_t>(epoch + 1), static_cast<std::int32_t>(number % 5),
                             random.normal(), random.uniform(), epoch == 1 ? strange_nan() : random.normal(),
                             random.uniform(), 1e-3, 0.25});
    }
    return one;
}

inline search::Population population(std::uint32_t count, const search::Space& space) {
    search::Population all(search::ExchangeKind::none, 4);
    for (std::uint32_t number = 0; number < count; ++number) {
        const search::Individual one = individual(number, space);
        all.merge(one);
        if (number % 3 == 0) {
            all.merge(one.id, search::Home{1 + number % 4, static_cast<std::int32_t>(number % 6), 2});
            all.merge_membership(one.id, static_cast<std::int32_t>(number % 4));
        }
    }
    return all;
}

inline ArchiveFacts facts() {
    ArchiveFacts some;
    some.run = 0xFEDCBA9876543210;
    some.seed = ~std::uint64_t{0};
    some.restarts = 3;
    some.config = "name: mnist\n# größer\n" + std::string(100000, '#');
    some.data_fingerprint = "crc32c 1234";
    some.workers = 7;
    some.islands = 4;
    some.state = RunState::stopped;
    some.budget_evaluations = 200;
    some.starts = {{0, 4, 2, 1e9, 12.5, 0, 0},
                   {3, 7, 1, 2e9, 0.25, 3.5, 2, "4711", "juwels", "n[1-2]", "/scratch/slurm-4711.out", 2.5e9}};
    some.events = {
        {1.5, 0, "start", "hello"}, {2.5, 3, "failure", "a \"quoted\" text,\nof two lines"}, {3.5, 0, "", ""}};
    some.reports[{2, 5}] = {2, 5, 1, 2, 4, "n01", "cpu", 100.5, 90.25, 80.125, 12};
    some.reports[{3, 0}] = {3, 0, 0, 2, 4, "", "cuda:0", 200.5, 9, 8, 1};
    return some;
}

inline bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

inline bool same(const search::Event& a, const search::Event& b) {
    return same_bits(a.time, b.time) && a.worker == b.worker && a.kind == b.kind && a.text == b.text;
}

inline bool same(const search::WorkerReport& a, const search::WorkerReport& b) {
    return a.restart == b.restart && a.worker == b.worker && a.island == b.island && a.ranks == b.ranks &&
           a.threads == b.threads && a.node == b.node && a.device == b.device && same_bits(a.time, b.time) &&
           same_bits(a.up_seconds, b.up_seconds) && same_bits(a.busy_seconds, b.busy_seconds) &&
           a.evaluations == b.evaluations;
}

}  // namespace finch::store::samples
