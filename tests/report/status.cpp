#include "finch/report/status.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/store/journal.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <climits>
#include <doctest/doctest.h>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <sys/inotify.h>
#include <unistd.h>

using namespace finch;
using testing::TemporaryFolder;

namespace {

search::Individual bred(std::uint32_t number) {
    search::Individual individual;
    individual.id = search::Id::make(0, 0, number);
    return individual;
}

search::Individual evaluated_at(std::uint32_t number, double loss) {
    search::Individual individual = bred(number);
    individual.outcome = search::Outcome::evaluated;
    individual.loss = loss;
    return individual;
}

/// Records with inotify which files in `folders` are opened, and which are written, created, renamed or removed.
class Watch {
public:
    explicit Watch(const std::vector<std::filesystem::path>& folders) : file_(::inotify_init1(IN_NONBLOCK)) {
        for (const std::filesystem::path& folder : folders) {
            works_ = ::inotify_add_watch(file_.get(), folder.c_str(), IN_OPEN | changes) >= 0 && works_;
        }
    }
    [[nodiscard]] bool works() const { return file_ && works_; }  ///< false if inotify is unavailable
    void look() {
        alignas(inotify_event) char buffer[64 * (sizeof(inotify_event) + NAME_MAX + 1)];
        for (ssize_t size = 0; (size = ::read(file_.get(), buffer, sizeof buffer)) > 0;) {
            for (const char* at = buffer; at < buffer + size;) {
                const auto* event = reinterpret_cast<const inotify_event*>(at);
                const std::string name = event->len > 0 ? event->name : "";
                ((event->mask & changes) != 0 ? changed : opened).insert(name);
                at += sizeof(inotify_event) + event->len;
            }
        }
    }
    std::set<std::string> opened;
    std::set<std::string> changed;

private:
    static constexpr std::uint32_t changes =
        IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
    FileDescriptor file_;
    bool works_ = true;
};

class Run {
public:
    Run() : directory(folder / "run") { directory.create(); }
    void write(RunState state) {
        facts.state = state;
        store::write_archive(directory.archive(), {}, population, facts);
    }
    RunState state_after(RunState state) {
        write(state);
        return report::status(directory).state;
    }
    double progress() const { return report::status(directory).progress; }

    TemporaryFolder folder;
    store::RunDirectory directory;
    search::Population population{search::ExchangeKind::none, 1};
    store::ArchiveFacts facts = store::samples::facts();
};

}  // namespace

TEST_CASE("the state of a run comes from its archive, except that a locked run is running") {
    Run run;

    CHECK(run.state_after(RunState::complete) == RunState::complete);
    CHECK(run.state_after(RunState::stopped) == RunState::stopped);
    CHECK(run.state_after(RunState::running) == RunState::interrupted);
    {
        const store::RunLock lock(run.directory, "");
        CHECK(run.state_after(RunState::complete) == RunState::running);
    }
    CHECK(run.state_after(RunState::complete) == RunState::complete);
}

TEST_CASE("the text and the exit code of finch status show that a run has no results") {
    Run run;
    search::Individual failed = bred(1);
    failed.outcome = search::Outcome::failed;
    failed.problem = "exit code 1: there is no data/x.h5";
    run.population.merge(failed);
    const auto told = [&run](RunState state) {
        run.write(state);
        const report::Status status = report::status(run.directory);
        const std::string text = report::status_text(status);
        CHECK(text.ends_with(", 1 of 200 evaluations, 0 evaluated, 1 failed: 1 × exit code 1: there is no data/x.h5"));
        return std::pair(report::exit_code(status), text.substr(0, text.find(':')));
    };

    CHECK(told(RunState::complete) == std::pair(exit_no_result, std::string("complete without a result")));
    CHECK(told(RunState::gave_up) == std::pair(exit_no_result, std::string("gave up")));
    CHECK(told(RunState::stopped) == std::pair(exit_stopped, std::string("stopped early")));
    CHECK(told(RunState::running) == std::pair(exit_interrupted, std::string("interrupted")));
    CHECK(run.progress() < 0.001);

    run.population.merge(evaluated_at(2, 0.5));
    run.write(RunState::complete);
    const report::Status status = report::status(run.directory);
    CHECK(status.progress >= 2);
    CHECK(report::exit_code(status) == exit_done);
    CHECK(report::status_text(status).find(", best loss 0.5 (0.0.2), 1 evaluated, 1 failed: ") != std::string::npos);
}

TEST_CASE("status of a directory without a run throws ConfigError") {
    const TemporaryFolder folder;

    CHECK_THROWS_WITH_AS(static_cast<void>(report::status(store::RunDirectory(folder / "run"))),
                         doctest::Contains("there is no run"), ConfigError);
}

TEST_CASE("a run without archive and journal records is interrupted, with 0 evaluations") {
    const Run run;

    const report::Status status = report::status(run.directory);

    CHECK(status.state == RunState::interrupted);
    CHECK(report::progress_text(status) ==
          "0.0000000 none interrupted: " + run.directory.root().string() + ", 0 evaluations");
    const store::RunLock lock(run.directory, "");
    CHECK(report::status(run.directory).state == RunState::running);
}

TEST_CASE("the progress line contains the run number and the number of the last start") {
    Run run;
    run.population.merge(evaluated_at(1, 0.5));
    run.write(RunState::complete);

    const report::Status status = report::status(run.directory);

    const store::ArchiveFacts facts = store::samples::facts();
    CHECK(status.start == fmt::format("{:016x}/{}", facts.run, facts.restarts + 1));
    CHECK(report::progress_text(status) ==
          fmt::format("{:.7f} {} {}", status.progress, status.start, report::status_text(status)));
}

TEST_CASE("status opens no snapshot, and writes, renames and removes no file") {
    Run run;
    for (std::uint32_t number = 1; number <= 64; ++number) {
        run.population.merge(bred(number));
        const std::filesystem::path snapshot = run.directory.training(bred(number).id);
        std::ofstream(snapshot).close();
        std::filesystem::resize_file(snapshot, std::uintmax_t{300} << 20);  // a sparse file without disk blocks
    }
    run.write(RunState::running);
    Watch watch({run.directory.root(), run.directory.state()});
    if (!watch.works()) {
        MESSAGE("skipped: inotify does not work here");
        return;
    }

    const report::Status status = report::status(run.directory);

    watch.look();
    CHECK(status.unfinished == 64);
    CHECK(watch.changed == std::set<std::string>{});
    CHECK(watch.opened.contains("population.h5"));
    for (const std::string& name : watch.opened) {
        CHECK_FALSE(name.starts_with("training-"));
    }
}

TEST_CASE("results in a journal count like results in the archive") {
    Run run;
    run.population.merge(evaluated_at(1, 0.5));
    run.population.merge(bred(2));
    run.write(RunState::running);
    const std::uint64_t number = store::samples::facts().run;
    store::Journal journal(run.directory.journal(0), number);
    journal.write(search::encode(search::Result{evaluated_at(3, 0.25)}, number));

    report::Status status = report::status(run.directory);

    CHECK(status.finished == 2);
    CHECK(status.unfinished == 1);
    CHECK(status.budget_evaluations == 200);
    REQUIRE(status.best);
    CHECK(status.best->loss == 0.25);
    CHECK(report::status_text(status) == "interrupted: " + run.directory.root().string() +
                                             ", 2 of 200 evaluations, 1 unfinished, best loss 0.25 (0.0.3)");
    CHECK(status.config == store::samples::facts().config);
    status.measure.name = "error";
    CHECK(report::status_text(status).ends_with(", best error 0.25 (0.0.3)"));
}

TEST_CASE("the status has the budget of epochs and the epochs of all individuals, also unfinished ones") {
    Run run;
    search::Individual ended = evaluated_at(1, 0.5);
    ended.epochs = 10;
    search::Individual unfinished = bred(2);
    unfinished.epochs = 4;
    run.population.merge(ended);
    run.population.merge(unfinished);
    run.facts.budget_epochs = 600;
    run.write(RunState::stopped);

    const report::Status status = report::status(run.directory);

    CHECK(status.epochs == 14);
    CHECK(status.budget_epochs == 600);
    CHECK(report::status_text(status).find(", 1 of 200 evaluations, 14 of 600 epochs, 1 unfinished") !=
          std::string::npos);
}

TEST_CASE("progress grows with every snapshot of a training, and again with its result") {
    Run run;
    run.population.merge(bred(1));
    run.population.merge(bred(2));
    run.write(RunState::running);
    const std::uint64_t number = store::samples::facts().run;
    store::Journal journal(run.directory.journal(0), number);
    const auto save_training = [&](std::uint32_t id, double share) {
        search::Individual individual = bred(id);
        individual.progress = share;
        journal.write(search::encode(search::Started{individual}, number));
    };
    std::vector<double> seen{run.progress()};

    save_training(1, 0.25);
    seen.push_back(run.progress());
    save_training(1, 0.5);
    seen.push_back(run.progress());
    save_training(2, 0.01);
    seen.push_back(run.progress());
    save_training(1, 1.0);
    seen.push_back(run.progress());
    journal.write(search::encode(search::Result{evaluated_at(1, 0.5)}, number));
    seen.push_back(run.progress());

    for (std::size_t i = 1; i < seen.size(); ++i) {
        CHECK(seen[i] > seen[i - 1]);
    }
    CHECK(seen.front() < 0.001);
    CHECK(seen[2] == doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE("consecutive deaths of a worker add less progress than any snapshot, and only up to a bound") {
    const auto progress_after = [](std::int32_t deaths, std::int32_t silent_ends, double share) {
        Run run;
        search::Individual individual = bred(1);
        individual.attempt.deaths = deaths;
        individual.progress = share;
        run.population.merge(individual);
        store::ArchiveFacts facts = store::samples::facts();
        facts.starts.back().silent_ends = silent_ends;
        store::write_archive(run.directory.archive(), {}, run.population, facts);
        return run.progress();
    };

    CHECK(progress_after(1, 0, 0) > progress_after(0, 0, 0));
    CHECK(progress_after(2, 0, 0) > progress_after(1, 0, 0));
    CHECK(progress_after(3, 0, 0) == progress_after(2, 0, 0));
    CHECK(progress_after(0, 1, 0) > progress_after(0, 0, 0));
    CHECK(progress_after(0, 4, 0) > progress_after(0, 3, 0));
    CHECK(progress_after(0, 100, 0) == progress_after(0, 50, 0));
    CHECK(progress_after(1, 0, 0) > progress_after(0, 100, 0));
    CHECK(progress_after(0, 0, 0.0001) > progress_after(2, 100, 0));
}

TEST_CASE("the status table has a line per run, also for runs that cannot be read") {
    Run first;
    Run second;
    first.facts.budget_evaluations = 4;
    first.facts.starts = {{.restart = 0, .seconds = 3600, .deadline = 10000}};
    first.facts.reports = {};
    first.facts.merge({0, 0, 0, 1, 1, "n1", "cpu", 1, 3600, 0, 2});
    for (std::uint32_t number = 1; number <= 2; ++number) {
        search::Individual one = evaluated_at(number, 0.5 / number);
        one.finished = 1000 * number;
        first.population.merge(one);
    }
    first.write(RunState::running);
    second.write(RunState::complete);
    const store::RunDirectory damaged(second.folder / "damaged");
    damaged.create();
    testing::put_contents(damaged.archive(), "rubbish");
    const store::RunDirectory none(second.folder / "none");
    const store::RunLock lock(first.directory, "");

    const auto runs = report::statuses({first.directory, damaged, second.directory, none});
    const std::string table = report::status_table(runs, 2060);

    REQUIRE(runs.size() == 4);
    const auto line_of = [&](const store::RunDirectory& directory) {
        const std::size_t begin = table.find("  " + directory.root().string() + " ");
        REQUIRE(begin != std::string::npos);
        std::string words;
        std::istringstream line(
            table.substr(begin + 2 + directory.root().string().size(), table.find('\n', begin) - begin));
        for (std::string word; line >> word && word.find('/') != 0;) {
            words += (words.empty() ? "" : " ") + word;
        }
        return words;
    };
    CHECK(line_of(first.directory).starts_with("running 2/4 0 loss 0.25 1 min 00 s ago 2.0 1 h 00 min 2 h 12 min"));
    CHECK(line_of(second.directory).starts_with("complete without a result 0/200 0 - - "));
    CHECK(line_of(damaged).starts_with("unreadable - - - - - - -"));
    CHECK(table.find("neither the archive nor its predecessor can be read") != std::string::npos);
    CHECK(table.find("none: there is no run here") != std::string::npos);
}

TEST_CASE("control characters in a run's name are replaced by question marks") {
    std::vector<report::Status> runs(2);
    runs[0].run = "runs/a\x1B[2J\nb";
    runs[1].run = "runs/c\xFF\td";
    runs[1].problem = runs[1].run + ": there is no run here";

    const std::string table = report::status_table(runs, 0);

    CHECK(table.find("  runs/a?[2J?b ") != std::string::npos);
    CHECK(table.find("  runs/c??d ") != std::string::npos);
    CHECK(table.find("\nruns/c?\td: there is no run here\n") != std::string::npos);
    CHECK(report::status_text(runs[0]).find(": runs/a?[2J?b, ") != std::string::npos);
}

TEST_CASE("the exit code for several runs is the exit code of the run in the worst state") {
    const auto code = [](std::vector<RunState> states, bool has_unreadable = false, bool has_results = true) {
        std::vector<report::Status> runs(states.size());
        for (std::size_t i = 0; i < runs.size(); ++i) {
            runs[i].state = states[i];
            if (has_results) {
                runs[i].best = evaluated_at(1, 0.5);
            }
        }
        if (has_unreadable) {
            runs.emplace_back();
            runs.back().problem = "there is no run here";
        }
        return report::exit_code(runs);
    };

    CHECK(code({RunState::complete, RunState::complete}) == exit_done);
    CHECK(code({RunState::complete, RunState::running}) == exit_running);
    CHECK(code({RunState::running, RunState::stopped}) == exit_stopped);
    CHECK(code({RunState::terminated, RunState::interrupted, RunState::running}) == exit_interrupted);
    CHECK(code({RunState::interrupted, RunState::complete}, false, false) == exit_no_result);
    CHECK(code({RunState::interrupted, RunState::gave_up}) == exit_no_result);
    CHECK(code({RunState::gave_up, RunState::interrupted}, true) == exit_input);
}
