// Implements finch plan --try.
#include "finch/app/plan.hpp"
#include "finch/base/format.hpp"
#include "finch/report/individual.hpp"
#include "finch/run/evolve.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/programs.hpp"
#include "finch/run/progress.hpp"
#include "finch/store/resume.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace finch::app {
namespace {

namespace fs = std::filesystem;

/// A new directory in the parent of the run directory, which all nodes can read. The destructor removes the directory
/// and its content.
class TemporaryPlace {
public:
    explicit TemporaryPlace(const fs::path& run) : parent_(fs::absolute(run).parent_path()) {
        std::error_code failure;
        is_new_ = fs::create_directories(parent_, failure);
        std::string name = (parent_ / ".try-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw ConfigError(
                fmt::format("--try: no folder can be made in {}: {}", parent_.string(), std::strerror(errno)));
        }
        path_ = name;
    }
    ~TemporaryPlace() {
        std::error_code none;
        fs::remove_all(path_, none);
        if (is_new_) {
            fs::remove(parent_, none);
        }
    }
    TemporaryPlace(const TemporaryPlace&) = delete;
    TemporaryPlace& operator=(const TemporaryPlace&) = delete;
    [[nodiscard]] const fs::path& path() const noexcept { return path_; }

private:
    fs::path parent_;
    fs::path path_;
    bool is_new_ = false;
};

std::string tried_text(const fs::path& run, const search::Measure& measure, int code) {
    const store::RunDirectory directory(run);
    const store::Recovered recovered = store::recover_run(directory);
    search::Population population(search::ExchangeKind::none, 1);
    recovered.merge_into(population);
    std::string text;
    for (const auto& [id, individual] : population.individuals()) {
        text += report::individual_text(recovered, directory, id, measure);
    }
    return text + (code == exit_done    ? "the first individual gives a result; nothing of it is kept\n"
                   : code == exit_fault ? "the first individual gives no result; nothing of it is kept\n"
                                        : "stopped before the first individual ended; nothing of it is kept\n");
}

}  // namespace

int try_plan(comm::Session& session, const PlanOptions& options, process::Launcher launcher) {
    std::optional<TemporaryPlace> place;
    search::Measure measure;
    run::RunOptions trial;
    trial.config = options.config;
    trial.settings = options.settings;
    trial.run = run::on_rank_zero(MPI_COMM_WORLD, [&] {
        const bool has_plan = options.nodes || options.ranks_per_node;
        if (has_plan) {
            static_cast<void>(plan(options));
        }
        const config::Config config = load_to_plan(options);
        measure = config.measure;
        if (const auto* const command = std::get_if<config::CommandObjective>(&config.objective)) {
            trial.settings.emplace_back("search.objective.keep=all");
            if (!has_plan) {
                print_command_notes(run::prepare_programs(config, evaluate::read_templates(*command))->line);
            }
        }
        place.emplace(run::run_directory_of(config, {}));
        return place->path().string();
    });
    trial.settings.insert(trial.settings.end(), {"log={level: warning}"});
    trial.is_trial = true;
    const int code = run::train_one(session, std::move(trial), std::move(launcher));
    if (place) {
        fmt::print("{}", tried_text(place->path(), measure, code));
    }
    return code;
}

}  // namespace finch::app
