// Whole searches in one process: several leaders exchange messages, and each leader has its own population.
#include "finch/search/exchange.hpp"
#include "finch/search/function.hpp"
#include "finch/search/propagator.hpp"

#include "search/samples.hpp"

#include <array>
#include <doctest/doctest.h>
#include <memory>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr int workers = 4;
constexpr int islands = 2;

/// Four leaders on two islands that search for the minimum of a function. Leaders 0 and 1 are on island 0.
class SearchOfIslands {
public:
    /// `delay`: the probability that a message waits for another round.
    SearchOfIslands(const std::string& function, const ExchangeOptions& exchange, std::uint64_t seed, double delay)
        : function_(find_function(function)),
          exchange_(exchange),
          seed_(seed),
          delay_(delay),
          network_(seed, Purpose::test),
          propagator_(make_propagator(GeneticOptions{8, 0.7, 0.4, 0.1, 0.05},
                                      function_space(function_, function_.default_dimensions), 1)),
          leaders_(workers, Population(exchange.kind, islands)),
          archive_(exchange.kind, islands) {}

    void run(std::uint32_t generations) {
        for (std::uint32_t generation = 1; generation <= generations; ++generation) {
            for (const std::uint32_t worker : network_.permutation(workers)) {
                receive(worker, delay_);
                live(worker, generation);
            }
        }
        for (std::uint32_t worker = 0; worker < workers; ++worker) {
            receive(worker, 0);
        }
    }

    [[nodiscard]] const Population& leader(std::size_t worker) const { return leaders_[worker]; }
    [[nodiscard]] const Population& archive() const { return archive_; }

private:
    static int island_of(std::uint32_t worker) { return static_cast<int>(worker) / 2; }

    /// Merges the waiting records of `worker`. Late records arrive out of order, and some arrive twice.
    void receive(std::uint32_t worker, double delay) {
        std::vector<Record> late;
        for (const Record& record : mail_[worker]) {
            if (network_.uniform() < delay) {
                late.push_back(record);
                if (network_.uniform() < 0.8) {
                    continue;
                }
            }
            leaders_[worker].merge(record);
        }
        mail_[worker] = std::move(late);
    }

    void live(std::uint32_t worker, std::uint32_t generation) {
        Individual individual;
        individual.id = Id::make(0, worker, generation);
        individual.island = island_of(worker);
        RandomStream breeding(seed_, Purpose::breeding, individual.id.value);
        Offspring offspring = propagator_->breed(leaders_[worker], individual.island, {}, breeding);
        individual.genome = std::move(offspring.genome);
        individual.outcome = Outcome::evaluated;
        individual.loss = function_.value(individual.genome);
        tell(worker, Result{individual}, individual.island);

        const auto first = static_cast<std::int32_t>(2 * island_of(worker));
        RandomStream chance(seed_, Purpose::exchange, individual.id.value);
        for (const Record& record : plan_exchange(exchange_, leaders_[worker], {island_of(worker), {first, first + 1}},
                                                  static_cast<std::int32_t>(worker), chance)) {
            const auto* move = std::get_if<Move>(&record);
            tell(worker, record, move != nullptr ? move->home.island : std::get<Copy>(record).island);
        }
    }

    /// Sends a record to its sender, to the sender's island, to the island `target` and to the archive.
    void tell(std::uint32_t from, const Record& record, int target) {
        leaders_[from].merge(record);
        archive_.merge(record);
        for (std::uint32_t worker = 0; worker < workers; ++worker) {
            if (worker != from && (island_of(worker) == target || island_of(worker) == island_of(from))) {
                mail_[worker].push_back(record);
            }
        }
    }

    const Function& function_;
    ExchangeOptions exchange_;
    std::uint64_t seed_;
    double delay_;
    RandomStream network_;
    std::unique_ptr<Propagator> propagator_;
    std::vector<Population> leaders_;
    Population archive_;
    std::array<std::vector<Record>, workers> mail_;
};

double median_loss(const std::string& function) {
    std::vector<double> losses;
    for (std::uint64_t seed = 1; seed <= 15; ++seed) {
        SearchOfIslands search(function, {ExchangeKind::pollination, Topology::all, 0.9, 1}, seed, 0.2);
        search.run(256);
        losses.push_back(search.archive().best()->loss);
    }
    return median(losses);
}

}  // namespace

TEST_CASE("after all messages arrived, the leaders of an island and the archive know the same active individuals") {
    for (const ExchangeKind kind : {ExchangeKind::none, ExchangeKind::migration, ExchangeKind::pollination}) {
        for (const std::uint64_t seed : {1, 2, 3}) {
            SearchOfIslands search("rastrigin", {kind, Topology::all, 0.9, 2}, seed, 0.6);
            search.run(100);

            for (const int island : {0, 1}) {
                const auto first = static_cast<std::size_t>(2 * island);
                const auto active = ids(search.leader(first).best(island, 1000));
                CHECK(active == ids(search.leader(first + 1).best(island, 1000)));
                CHECK(active == ids(search.archive().best(island, 1000)));
            }
            CHECK(search.archive().active(0) + search.archive().active(1) == workers * 100);
            if (kind == ExchangeKind::pollination) {
                CHECK(search.archive().active(0) == 2 * 100);
            }
        }
    }
}

// The bands of expected losses cover Propulate's own best losses with 4 workers, 2 islands, pollination .9, population
// 8 and 1 024 evaluations (three seeds each; github.com/Helmholtz-AI-Energy/propulate, be052c3). They also cover the
// quartiles of 41 seeds of another implementation of Propulate's chain. In that implementation and in Finch, a pool
// holds each individual once. Propulate copies the best individual repeatedly until it fills the pool. This improves
// the result in two dimensions and worsens it in thirty.
TEST_CASE("the default chain reaches Propulate's losses with the same budget") {
    struct Band {
        std::string function;
        double best;
        double worst;
    };
    const std::vector<Band> bands{
        {"sphere", 5e-6, 1.8e-4}, {"rosenbrock", 0.0027, 0.088}, {"rastrigin", 25, 68},
        {"griewank", 1.01, 1.24}, {"schwefel", 11, 388},         {"birastrigin", 78, 125},
    };
    for (const Band& band : bands) {
        CAPTURE(band.function);
        const double found = median_loss(band.function);
        CHECK(found >= band.best);
        CHECK(found <= band.worst);
    }
}
