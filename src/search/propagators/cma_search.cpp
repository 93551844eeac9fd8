#include "cma_search.hpp"

#include "folding_propagator.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

// IPOP restarts follow Auger and Hansen, "A restart CMA evolution strategy with increasing population size", CEC 2005.
// BIPOP restarts follow Hansen, "Benchmarking a BI-population CMA-ES on the BBOB-2009 function testbed", GECCO 2009.
namespace finch::search {
namespace {

constexpr int most_doublings = 9;

std::vector<std::size_t> moved_genes(const Space& space) {
    std::vector<std::size_t> moved = free_genes(space);
    std::erase_if(moved, [&](std::size_t i) { return is_choice(space.genes[i]); });
    return moved;
}

std::vector<std::size_t> free_choices(const Space& space) {
    std::vector<std::size_t> choices = free_genes(space);
    std::erase_if(choices, [&](std::size_t i) { return !is_choice(space.genes[i]); });
    return choices;
}

}  // namespace

ChoiceShares::ChoiceShares(std::size_t options, std::size_t choices)
    : shares_(options, 1 / static_cast<double>(options)),
      least_((1 - std::pow(0.73, 1 / static_cast<double>(choices))) / static_cast<double>(options - 1)) {}

std::size_t ChoiceShares::draw(RandomStream& random) const {
    double left = random.uniform();
    std::size_t option = 0;
    while (option + 1 < shares_.size() && left >= shares_[option]) {
        left -= shares_[option++];
    }
    return option;
}

void ChoiceShares::learn(std::size_t option, double rate) {
    for (double& share : shares_) {
        share *= 1 - rate;
    }
    shares_[option] += rate;
}

void ChoiceShares::normalize() {
    double sum = 0;
    for (double& share : shares_) {
        share = std::max(share, least_);
        sum += share;
    }
    const double over = sum - static_cast<double>(shares_.size()) * least_;
    const double given = over > 0 ? (1 - sum) / over : 0;
    for (double& share : shares_) {
        share += given * (share - least_);
    }
}

int samples_of_small_start(int usual, int doublings, double uniform) {
    return static_cast<int>(usual * std::pow(std::exp2(doublings) / 2, uniform * uniform));
}

CmaState::CmaState(CmaPlan plan)
    : plan_(std::move(plan)),
      moved_(moved_genes(plan_.space)),
      choices_(free_choices(plan_.space)),
      cma_({0.5}, plan_.options.sigma) {
    RandomStream random(plan_.seed, Purpose::breeding_state, 0, static_cast<std::uint32_t>(plan_.island));
    begin(moved_part(random_point(plan_.space.size(), random)), plan_.options.sigma, usual_samples());
}

/// Returns the usual number of samples per generation, 4 + 3 ln n, and half the number of workers more: while they
/// train, the distribution changes at most twice.
int CmaState::usual_samples() const {
    if (plan_.options.population > 0) {
        return static_cast<int>(plan_.options.population);
    }
    const auto genes = static_cast<double>(std::max<std::size_t>(1, moved_.size() + choices_.size()));
    return 4 + static_cast<int>(3 * std::log(genes)) + plan_.workers / 2;
}

void CmaState::begin(UnitGenome mean, double sigma, int samples) {
    CmaEsSettings settings{.samples = samples, .flat = 0};
    settings.thresholds = moved_.empty() ? Thresholds(1) : thresholds_of(plan_.space, moved_);
    cma_ = CmaEs(mean, sigma, std::move(settings));
    taken_ = 0;
    generation_.clear();
    shares_.clear();
    for (const std::size_t i : choices_) {
        shares_.emplace_back(*value_count(plan_.space.genes[i]), choices_.size());
    }
}

/// Returns one coordinate for each gene that CMA-ES moves. If CMA-ES moves no gene, returns one dummy coordinate.
UnitGenome CmaState::moved_part(const UnitGenome& point) const {
    UnitGenome part;
    for (const std::size_t i : moved_) {
        part.push_back(point[i]);
    }
    return part.empty() ? UnitGenome{0.5} : part;
}

void CmaState::take(const Individual& individual, bool born_here) {
    const double loss = std::min(comparable_loss(individual), std::numeric_limits<double>::max());
    const bool is_sample = born_here && individual.bred_by == Operator::cma_es;
    if (is_sample && individual.breeding.slot == number_) {
        add(individual, loss);
    } else if (!is_sample && loss < cma_.best_loss() && individual.ranks_by_loss()) {
        const bool has_begun = doublings_ > 0 || is_small_ || cma_.generations() > 0;
        if (individual.bred_by == Operator::given && !has_begun) {
            ++number_;
            begin(moved_part(to_unit(plan_.space, individual.genome)), plan_.options.sigma, usual_samples());
        }
        add(individual, loss);
    }
    const bool is_out_of_turn = is_small_ && 2 * taken_ > last_large_taken_;
    if (plan_.options.restarts != Restarts::none && cma_.is_between_generations() &&
        (cma_.has_ended() || cma_.has_stagnated() || is_out_of_turn)) {
        restart();
    }
}

void CmaState::add(const Individual& individual, double loss) {
    ++taken_;
    UnitGenome point = to_unit(plan_.space, individual.genome);
    const std::vector<bool> active = active_genes(plan_.space, individual.genome);
    Chosen chosen{{}, loss};
    for (std::size_t i = 0; i < point.size(); ++i) {
        point[i] = active[i] ? point[i] : std::numeric_limits<double>::quiet_NaN();
    }
    for (const std::size_t i : choices_) {
        chosen.options.push_back(active[i] ? static_cast<int>(individual.genome[i]) : -1);
    }
    generation_.push_back(std::move(chosen));
    RandomStream random(plan_.seed, Purpose::breeding_state, individual.id.value, 1);
    cma_.take(moved_.empty() ? UnitGenome{std::numeric_limits<double>::quiet_NaN()} : moved_part(point), loss, random);
    if (cma_.is_between_generations()) {
        learn_choices();
    }
}

/// Updates the probabilities of options from the better half of the generation, with the weights that CMA-ES uses for
/// its samples.
void CmaState::learn_choices() {
    std::stable_sort(generation_.begin(), generation_.end(),
                     [](const Chosen& a, const Chosen& b) { return a.loss < b.loss; });
    const std::size_t half = generation_.size() / 2;
    std::vector<double> weights;
    for (std::size_t i = 0; i < half; ++i) {
        weights.push_back(std::log((static_cast<double>(generation_.size()) + 1) / 2) -
                          std::log(static_cast<double>(i) + 1));
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double squares = std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
    const double selected = sum * sum / squares;  // μ_eff
    double degrees = 0;
    for (const ChoiceShares& choice : shares_) {
        degrees += static_cast<double>(choice.shares().size() - 1);
    }
    const double rate = selected / (selected + 2 * degrees);
    for (std::size_t choice = 0; choice < shares_.size(); ++choice) {
        for (std::size_t i = 0; i < half; ++i) {
            if (const int option = generation_[i].options[choice]; option >= 0) {
                shares_[choice].learn(static_cast<std::size_t>(option), rate * weights[i] / sum);
            }
        }
        shares_[choice].normalize();
    }
    generation_.clear();
}

void CmaState::restart() {
    if (is_small_) {
        small_taken_ += taken_;
    } else {
        large_taken_ += doublings_ > 0 ? taken_ : 0;
        last_large_taken_ = taken_;
    }
    ++number_;
    RandomStream random(plan_.seed, Purpose::breeding_state, static_cast<std::uint64_t>(number_),
                        static_cast<std::uint32_t>(plan_.island));
    const UnitGenome mean = moved_part(random_point(plan_.space.size(), random));
    is_small_ = plan_.options.restarts == Restarts::bipop && doublings_ > 0 && small_taken_ < large_taken_;
    const int usual = usual_samples();
    if (!is_small_) {
        doublings_ = std::min(doublings_ + 1, most_doublings);
        begin(mean, plan_.options.sigma, usual << doublings_);
        return;
    }
    const int samples = samples_of_small_start(usual, doublings_, random.uniform());
    begin(mean, plan_.options.sigma * std::pow(10, -2 * random.uniform()), samples);
}

Offspring CmaState::breed(const Stage& stage, RandomStream& random) const {
    Offspring offspring;
    offspring.breeding.budget_used = stage.budget_used;
    if (moved_.empty() && choices_.empty()) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    UnitGenome point(plan_.space.size(), 0.5);
    const auto numbers = static_cast<Eigen::Index>(std::max<std::size_t>(1, moved_.size()));
    const UnitGenome moved = stage.attempt > 0
                                 ? cma_.sample(random)
                                 : cma_.sample(random, mirrored_normals(numbers, stage.births, plan_.seed,
                                                                        static_cast<std::uint32_t>(plan_.island)));
    for (std::size_t i = 0; i < moved_.size(); ++i) {
        point[moved_[i]] = moved[i];
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const Gene& gene = plan_.space.genes[choices_[i]];
        point[choices_[i]] = to_unit(gene, static_cast<double>(shares_[i].draw(random)));
    }
    offspring.genome = from_unit(plan_.space, point);
    offspring.bred_by = Operator::cma_es;
    offspring.breeding.slot = number_;
    return offspring;
}

std::unique_ptr<Propagator> make(const CmaEsOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<FoldingPropagator<CmaState, CmaEsOptions>>(options, space, seed);
}

}  // namespace finch::search
