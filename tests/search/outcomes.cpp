#include "finch/search/outcomes.hpp"

#include "samples.hpp"

#include <doctest/doctest.h>

namespace finch::search {
namespace {

Individual ended(std::uint32_t number, Outcome outcome, const std::string& problem = "") {
    Individual individual = samples::bred(number);
    individual.outcome = outcome;
    individual.problem = problem;
    individual.node = number == 5 && problem.empty() ? "n2" : "n1";
    return individual;
}

std::string traceback(const std::string& folder) {
    return "exit code 1: Traceback (most recent call last):\n  File \"" + folder + "/train.py\", line 3\n" +
           "FileNotFoundError: [Errno 2] No such file: '" + folder + "/data/tex.h5'\n";
}

}  // namespace

TEST_CASE("Outcomes: equal problems except for numbers and folders are counted, then the failures of each node") {
    Outcomes outcomes;
    outcomes.add(ended(1, Outcome::failed, "exit code 3"));
    outcomes.add(ended(2, Outcome::failed, traceback("/tmp/tmpk3j_x8/0.0.2")));
    outcomes.add(ended(3, Outcome::failed, traceback("/scratch/run/1.0/17") + "[W123] a last warning"));
    outcomes.add(ended(4, Outcome::out_of_memory, "out of memory: it needs 12 MiB, and 3 MiB are left"));
    outcomes.add(ended(5, Outcome::diverged));

    CHECK(outcomes.count(Outcome::failed) == 3);
    CHECK(outcomes.without_result() == 5);
    CHECK(
        outcomes.text() ==
        "0 evaluated, 1 diverged, 1 out_of_memory, 3 failed: 2 × FileNotFoundError: [Errno 2] No such file: "
        "'/tmp/tmpk3j_x8/0.0.2/data/tex.h5'; 1 × exit code 3; 1 × out of memory: it needs 12 MiB, and 3 MiB are left; "
        "failed by node: 4 of 4 on n1, 0 of 1 on n2");
}

TEST_CASE("Outcomes: a signal or a missing loss is reported instead of the program's earlier output") {
    const std::string signal = "ended by signal 9 (Killed, as the kernel does where memory runs out)";
    const std::string mute = "it ended without a loss: no line of standard output begins with 'finch loss='";
    const std::string left = "it ended while 2 of its processes still ran (a \"&\" without \"wait\"?)";
    const std::string panic = "exit code 101: thread 'main' panicked at src/main.rs:5:\n";
    const auto told = [](const std::string& problem) {
        Outcomes outcomes;
        outcomes.add(ended(1, Outcome::failed, problem));
        return outcomes.problems();
    };

    CHECK(told(signal + ": a.py:3: UserWarning: slow\n  warnings.warn(\n") == ": 1 × " + signal);
    CHECK(told("rank 1: ended by signal 6 (Aborted): trace\nCudaError: lost\ncore") ==
          ": 1 × rank 1: ended by signal 6 (Aborted): CudaError: lost");
    CHECK(told("ended by signal 6 (Aborted): CudaError: lost") == ": 1 × ended by signal 6 (Aborted): CudaError: lost");
    CHECK(told(mute + "\nloading\nno data") == ": 1 × " + mute);
    CHECK(told(left + ": loading") == ": 1 × " + left);
    CHECK(told(panic + "bad gene\nnote: run with `RUST_BACKTRACE=1`") == ": 1 × bad gene");
}

TEST_CASE("the exception of a traceback is the reason, among other words of frameworks and launchers") {
    const std::string noise = "dlerror: libcudart.so.11.0 cannot be opened\n";
    const std::string frames = "Traceback (most recent call last):\n  File a\n    x = 1 / 0  # Error: none\n";
    const std::string marked = "[rank0]: Traceback (most recent call last):\n[rank0]:   File a\n[rank0]: BadGene\n";
    std::string much;
    for (int line = 0; line < 10; ++line) {
        much += noise;
    }

    CHECK(telling_line("exit code 1: " + noise + frames + "BadGene: no\nLast Error: 3") == "BadGene: no");
    CHECK(telling_line(marked + noise + frames + "torch.ChildFailedError: \n" + noise) == "BadGene");
    CHECK(one_line("rank 2: exit code 1: " + noise + marked + noise) == "rank 2: exit code 1: BadGene");
    CHECK(one_line("exit code 2: usage: a\na: no b") == "exit code 2: a: no b");
    CHECK(one_line("exit code 2: b") == "exit code 2: b");
    CHECK(one_line("ended by signal 6 (Aborted): " + noise + frames + "Bad") == "ended by signal 6 (Aborted): Bad");
    CHECK(up_to_reason(noise + frames + "Bad\n" + much, 10) == noise + frames + "Bad");
    CHECK(up_to_reason(frames + "Bad\n" + noise, 5) == frames + "Bad\n" + noise);
    CHECK(up_to_reason(frames + "Bad\n" + noise, 2) == frames + "Bad");
    CHECK(up_to_reason(frames + "Bad\n" + much, 1) == frames + "Bad\n" + much);  // an earlier failure, long before
}

TEST_CASE("Outcomes: problems of failed individuals come first, other problems name their outcome") {
    Outcomes outcomes;
    for (std::uint32_t number = 1; number <= 4; ++number) {
        outcomes.add(ended(number, Outcome::pruned, "its last loss was nan, and it was pruned"));
    }
    outcomes.add(ended(5, Outcome::diverged, "its last loss is inf"));
    CHECK(outcomes.problems() ==
          ": of the diverged 1 × its last loss is inf; of the pruned 4 × its last loss was nan, and it was pruned");

    outcomes.add(ended(6, Outcome::failed, "exit code 2"));
    outcomes.add(ended(7, Outcome::evaluated));
    CHECK(outcomes.text() ==
          "1 evaluated, 4 pruned, 1 diverged, 1 failed: 1 × exit code 2; of the diverged 1 × its last loss is inf; "
          "of the pruned 4 × its last loss was nan, and it was pruned");
}

TEST_CASE("Outcomes: different exit codes, signals or words are different problems, and only three are listed") {
    CHECK(without_numbers("exit code 3") != without_numbers("exit code 4"));
    CHECK(without_numbers("ended by signal 9 (Killed)") != without_numbers("ended by signal 11 (Killed)"));
    CHECK(without_numbers("no /a/b in 12 s") == without_numbers("no /c/b in 1.5e-3 s"));
    CHECK(without_numbers("no a") != without_numbers("no b"));

    Outcomes outcomes;
    for (std::uint32_t number = 0; number < 5; ++number) {
        outcomes.add(ended(number + 1, Outcome::failed, "problem " + std::string(1, static_cast<char>('a' + number))));
    }
    CHECK(outcomes.text() ==
          "0 evaluated, 5 failed: 1 × problem a; 1 × problem b; 1 × problem c; and 2 other problems");
}

TEST_CASE("Outcomes: ignores unfinished and reused individuals, and cuts long problems between characters") {
    Outcomes outcomes;
    outcomes.add(samples::bred(1));
    Individual reused = ended(2, Outcome::failed, "of the other");
    reused.reused_from = samples::bred(1).id;
    outcomes.add(reused);
    CHECK(outcomes.text() == "0 evaluated");

    std::string umlauts;
    for (int i = 0; i < 200; ++i) {
        umlauts += "ä";
    }
    outcomes.add(ended(3, Outcome::failed, "x" + umlauts));
    CHECK(outcomes.problems() == ": 1 × x" + umlauts.substr(0, 396) + "…");
}

TEST_CASE("has_result: true only if a training ended with a loss and was not pruned") {
    Population population(ExchangeKind::none, 1);
    population.merge(ended(1, Outcome::failed));
    population.merge(ended(2, Outcome::diverged));
    Individual pruned = ended(3, Outcome::pruned);
    pruned.loss = 1;
    population.merge(pruned);
    CHECK_FALSE(has_result(population));

    Individual evaluated = ended(4, Outcome::evaluated);
    evaluated.loss = 2;
    population.merge(evaluated);

    CHECK(has_result(population));
    CHECK(Outcomes(population).counts() == "1 evaluated, 1 pruned, 1 diverged, 1 failed");
}

}  // namespace finch::search
