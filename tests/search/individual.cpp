#include "finch/search/individual.hpp"

#include "finch/base/error.hpp"
#include "finch/base/random.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Individual round_trip(const Individual& individual, bool with_curve) {
    Bytes bytes;
    write_individual(individual, with_curve, bytes);
    ByteReader reader(bytes);
    const Individual back = read_individual(reader);
    CHECK(reader.left() == 0);
    return back;
}

/// Returns records of one id. Each record supersedes all records before it.
std::vector<Individual> ladder() {
    Individual far = evaluated(1, 0.5);
    far.epochs = 5;
    Individual with_curve = far;
    with_curve.curve.resize(5);
    Individual unfinished_but_far = bred(1);
    unfinished_but_far.epochs = 9;
    Individual for_longer = bred(1);
    for_longer.training_seconds = 1;
    return {bred(1), for_longer, unfinished_but_far, evaluated(1, 0.1), far, with_curve};
}

}  // namespace

TEST_CASE("Id: make() stores restart, worker and sequence in separate bits, and refuses numbers that are too large") {
    const Id id = Id::make(4095, 1048575, 4294967295);

    CHECK(id.restart() == 4095);
    CHECK(id.worker() == 1048575);
    CHECK(id.sequence() == 4294967295);
    CHECK(Id::make(1, 2, 3).value == (1ULL << 52) + (2ULL << 32) + 3);
    CHECK_THROWS_AS((void)Id::make(4096, 0, 0), Error);
    CHECK_THROWS_AS((void)Id::make(0, 1048576, 0), Error);
}

TEST_CASE("Id: to_text() and parse_id() are inverse functions, and invalid text is refused") {
    const Id id = Id::make(2, 3, 17);

    CHECK(to_text(id) == "2.3.17");
    CHECK(parse_id("2.3.17") == id);
    CHECK(parse_id(std::to_string(id.value)) == id);
    for (const char* wrong : {"", "1.2", "1.2.3.4", "1..3", "a", "1.2.x", "4096.0.0", "0.1048576.1", "0.0.4294967296",
                              "-1", "1.2.3 ", "99999999999999999999"}) {
        CHECK_THROWS_AS((void)parse_id(wrong), ConfigError);
    }
}

TEST_CASE("write_individual and read_individual keep every field") {
    const Individual individual = complete(9);

    const Individual back = round_trip(individual, true);

    CHECK(back.id == individual.id);
    CHECK(back.island == 3);
    CHECK(back.generation == 7);
    CHECK(back.parents == individual.parents);
    CHECK(back.bred_by == Operator::crossover);
    CHECK(back.genome == individual.genome);
    CHECK(back.outcome == Outcome::evaluated);
    CHECK(back.loss == 0.25);
    CHECK(back.accuracy == 0.75);
    CHECK(back.epochs == 2);
    CHECK(back.best_epoch == 1);
    CHECK(back.problem == "none worth a word");
    CHECK(back.born == 10);
    CHECK(back.started == 11);
    CHECK(back.finished == 12);
    CHECK(back.samples_per_second == 1234.5);
    CHECK(back.ranks == 2);
    CHECK(back.threads == 4);
    CHECK(back.batch_size == 16);
    CHECK(back.node == "n01");
    CHECK(back.device == "cpu");
    REQUIRE(back.curve.size() == 2);
    CHECK(back.curve[1].epoch == 2);
    CHECK(back.curve[1].training_loss == 1.0);
    CHECK(back.curve[1].training_accuracy == 0.5);
    CHECK(back.curve[1].validation_loss == 1.25);
    CHECK(back.curve[1].validation_accuracy == 0.75);
    CHECK(back.curve[1].learning_rate == 0.05);
    CHECK(back.curve[1].seconds == 3.25);
    CHECK(identical(back, individual));
}

TEST_CASE("write_individual without the curve keeps all other fields") {
    Individual individual = complete(9);

    const Individual back = round_trip(individual, false);

    CHECK_FALSE(identical(back, individual));
    individual.curve.clear();
    individual.metrics.clear();
    CHECK(identical(back, individual));
}

TEST_CASE("read_individual: truncated bytes and an unknown operator throw FileError") {
    Bytes bytes;
    write_individual(complete(1), true, bytes);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        ByteReader reader(std::span<const std::byte>(bytes).first(length));
        CHECK_THROWS_AS((void)read_individual(reader), FileError);
    }

    const std::size_t operator_at = 8 + 4 + 4 + 16;
    bytes[operator_at] = std::byte{words_of(Operator{}).size()};
    ByteReader reader(bytes);
    CHECK_THROWS_AS((void)read_individual(reader), FileError);
}

TEST_CASE("problem_of: reports records that no search writes, for example an individual that is its own parent") {
    const Space space{{{"x", RealGene{0, 1}}}};
    Individual one;
    one.id = Id::make(0, 0, 1);
    one.genome = {0.5};
    one.breeding.slot = std::numeric_limits<std::int32_t>::max();
    CHECK_FALSE(problem_of(one, space));
    for (Id* const other : {&one.parents[0], &one.reused_from, &one.inherited_from}) {
        *other = one.id;
        CHECK(problem_of(one, space) == "comes from itself");
        *other = {};
    }
    one.reused_run = 7;
    CHECK(problem_of(one, space) == "names no individual of the other run whose result it has");
    one.reused_from = one.id;  // the same id in another run is a different individual
    CHECK_FALSE(problem_of(one, space));
    one.reused_run = 0;
    one.reused_from = {};
    one.bred_by = Operator::repeat;
    CHECK(problem_of(one, space) == "repeats no individual");
    one.parents[0] = Id::make(0, 0, 2);
    CHECK_FALSE(problem_of(one, space));
    one.training_seconds = Individual::not_measured;
    CHECK(problem_of(one, space) == "was trained for nan s");
    one.training_seconds = 1;
    one.joules = -1;
    CHECK(problem_of(one, space) == "took -1 J");
    one.joules = HUGE_VAL;
    CHECK(problem_of(one, space) == "took inf J");
    one.joules = Individual::not_measured;
    CHECK_FALSE(problem_of(one, space));
}

TEST_CASE("ranks_by_loss: true only for evaluated or pruned individuals with a finite loss") {
    CHECK(evaluated(1, 0.5).ranks_by_loss());
    CHECK(pruned(1, 2, 0.5).ranks_by_loss());
    CHECK_FALSE(pruned(1, 2, not_a_number).ranks_by_loss());
    CHECK_FALSE(evaluated(1, not_a_number).ranks_by_loss());
    CHECK_FALSE(evaluated(1, std::numeric_limits<double>::infinity()).ranks_by_loss());
    for (const Outcome outcome :
         {Outcome::unfinished, Outcome::stopped, Outcome::diverged, Outcome::out_of_memory, Outcome::failed}) {
        CHECK_FALSE(ended(1, outcome, 0.5).ranks_by_loss());
    }
}

TEST_CASE("better: higher rung first, then smaller loss, then smaller id; individuals without a comparable loss last") {
    const std::vector<Individual> in_order{evaluated(4, -1),
                                           evaluated(2, 0.5),
                                           evaluated(3, 0.5),
                                           evaluated(1, 2),
                                           pruned(15, 8, 1e30),
                                           pruned(14, 2, -1e-3),
                                           pruned(11, 2, 0),
                                           pruned(12, 2, 0.25),
                                           pruned(13, 2, 0.25),
                                           pruned(10, 2, 1.5),
                                           pruned(9, 1, -7),
                                           ended(5, Outcome::failed, -5),
                                           evaluated(6, not_a_number),
                                           ended(7, Outcome::diverged, -std::numeric_limits<double>::infinity()),
                                           bred(8)};

    for (std::size_t i = 0; i < in_order.size(); ++i) {
        for (std::size_t j = 0; j < in_order.size(); ++j) {
            CHECK(better(in_order[i], in_order[j]) == (i < j));
        }
    }
}

TEST_CASE("comparable_loss has the same order as better()") {
    RandomStream random(1, Purpose::test);
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= 200; ++number) {
        const double loss = random.normal() * std::pow(10, 20 * random.uniform() - 10);
        const auto rung = static_cast<std::int32_t>(random.below(most_rungs + 1));
        all.push_back(rung == 0 ? evaluated(number, loss) : pruned(number, rung, loss));
    }
    all.push_back(ended(201, Outcome::failed, 0));
    std::sort(all.begin(), all.end(), [](const Individual& a, const Individual& b) { return better(a, b); });

    for (std::size_t i = 1; i < all.size(); ++i) {
        CHECK(comparable_loss(all[i - 1]) < comparable_loss(all[i]));
    }
    CHECK(comparable_loss(evaluated(1, 0.125)) == 0.125);
    CHECK(comparable_loss(evaluated(1, 1e308)) < comparable_loss(pruned(2, most_rungs, -1e308)));
    CHECK(std::isinf(comparable_loss(all.back())));
}

TEST_CASE("supersedes: a finished record wins, then more epochs, then the longer curve, then the longer training") {
    const auto records = ladder();

    for (std::size_t i = 0; i < records.size(); ++i) {
        for (std::size_t j = 0; j < records.size(); ++j) {
            CHECK(supersedes(records[i], records[j]) == (i > j));
        }
    }
}

TEST_CASE("supersedes: of two otherwise equal records, exactly one wins: the record with the smaller bytes") {
    Individual a = evaluated(1, 0.5);
    Individual b = a;
    b.problem = "x";
    Individual unknown_loss = evaluated(1, not_a_number);

    CHECK(supersedes(a, b) != supersedes(b, a));
    CHECK(supersedes(a, b));  // the length of the text is compared first, and 0 is less than 1
    CHECK(supersedes(a, unknown_loss) != supersedes(unknown_loss, a));
    CHECK_FALSE(supersedes(unknown_loss, unknown_loss));
    CHECK(identical(unknown_loss, evaluated(1, not_a_number)));
}

TEST_CASE("make_recordable: removes invalid data, and keeps outcome, loss and genome") {
    const Space space{{{"x", RealGene{0, 1}}}};
    Individual whole = evaluated(1, 0.5);
    whole.genome = {0.25};
    const std::vector<std::function<void(Individual&)>> lies{
        [](Individual& one) { one.training_seconds = -1; },
        [](Individual& one) { one.finished = std::numeric_limits<double>::infinity(); },
        [](Individual& one) { one.progress = not_a_number; },
        [](Individual& one) { one.epochs = -3; },
        [](Individual& one) { one.curve.push_back({.epoch = 0}); },
        [](Individual& one) { one.inherited_from = one.id; },
        [](Individual& one) { one.inherited_epochs = one.epochs + 1; },
    };
    for (const auto& lie : lies) {
        Individual one = whole;
        lie(one);
        REQUIRE(problem_of(one, space));

        const auto changes = make_recordable(one, space);

        REQUIRE(changes);
        CHECK_MESSAGE(changes->find("of 0.1.1 only outcome and loss are recorded, as it ") == 0, *changes);
        CHECK_FALSE(problem_of(one, space));
        CHECK(one.outcome == Outcome::evaluated);
        CHECK(one.loss == 0.5);
        CHECK(one.genome == whole.genome);
    }
    Individual elsewhere = whole;
    elsewhere.genome = {2};
    CHECK_THROWS_WITH_AS(static_cast<void>(make_recordable(elsewhere, space)),
                         "0.1.1 cannot be recorded: it has a gene outside of the space", Error);
    Individual good = whole;
    CHECK_FALSE(make_recordable(good, space));
    CHECK(identical(good, whole));
}

TEST_CASE("make_recordable: removes epochs if a record has no room for all of them, but keeps the last epoch") {
    const Space space{{{"x", RealGene{0, 1}}}};
    Individual one = evaluated(1, 0.5);
    one.genome = {0.25};
    one.best_epoch = one.epochs = 2000000;
    for (std::int32_t epoch = 1; epoch <= one.epochs; ++epoch) {
        one.curve.push_back({.epoch = epoch, .validation_loss = 1.0 / epoch});
    }
    one.metrics = {{1, "first", 1}, {one.best_epoch, "last", 2}};

    const auto changes = make_recordable(one, space);

    REQUIRE(changes);
    CHECK(changes->find("of 0.1.1 some epochs or metrics are left out") == 0);
    CHECK(one.curve.back().epoch == 2000000);
    CHECK(one.curve.size() == 500000);
    REQUIRE(one.metrics.size() == 1);
    CHECK(one.metrics[0].name == "last");
    Bytes bytes;
    write_individual(one, true, bytes);
    CHECK(bytes.size() < std::size_t{64} << 20);
}
