#include "finch/base/files.hpp"
#include "finch/evaluate/kept_files.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace finch;
using namespace finch::evaluate;
using config::Keep;
using search::Outcome;

namespace {

search::Individual individual(std::uint32_t sequence, Outcome outcome, double loss) {
    search::Individual one;
    one.id = search::Id::make(0, 1, sequence);
    one.island = 0;
    one.outcome = outcome;
    one.loss = loss;
    one.finished = outcome == Outcome::unfinished ? 0 : 1;
    return one;
}

search::Population population() {
    search::Population made(search::ExchangeKind::none, 1);
    made.merge(individual(1, Outcome::evaluated, 2));
    made.merge(individual(2, Outcome::evaluated, 1));
    made.merge(individual(3, Outcome::failed, search::Individual::not_measured));
    made.merge(individual(4, Outcome::unfinished, search::Individual::not_measured));
    return made;
}

/// Creates a folder and an output file per individual, calls remove_spare_evaluations(), and returns the names of the
/// remaining files and folders.
std::set<std::string> left(Keep keep) {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder.path());
    for (std::uint32_t sequence = 1; sequence <= 5; ++sequence) {
        const search::Id id = search::Id::make(0, 1, sequence);
        std::filesystem::create_directories(directory.evaluation(id) / "checkpoints");
        testing::put_contents(directory.evaluation_file(id, "output-1"), "text");
    }
    testing::put_contents(directory.evaluations() / "0.1/notes.txt", "the user's own");
    testing::put_contents(directory.evaluations() / "pids", "a persistent program's own");
    remove_spare_evaluations(directory, population(), keep);
    std::set<std::string> names;
    for (const auto& path : list_folder(directory.evaluations() / "0.1")) {
        names.insert(path.filename().string());
    }
    return names;
}

}  // namespace

TEST_CASE("remove_spare_evaluations removes only files of finished individuals that `keep` does not select") {
    const std::set<std::string> others{"4", "4.output-1", "5", "5.output-1", "notes.txt"};
    const auto with = [&others](std::set<std::string> names) {
        names.insert(others.begin(), others.end());
        return names;
    };
    CHECK(left(Keep::none) == others);
    CHECK(left(Keep::failed) == with({"3", "3.output-1"}));
    CHECK(left(Keep::best) == with({"2", "2.output-1"}));
    CHECK(left(Keep::all) == with({"1", "1.output-1", "2", "2.output-1", "3", "3.output-1"}));
}
