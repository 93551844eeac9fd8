#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/shares.hpp"
#include "finch/evaluate/command_line.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/evaluate/program_environment.hpp"
#include "finch/evaluate/report_line.hpp"
#include "finch/process/launcher.hpp"
#include "finch/search/individual.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// The programs of one worker on this rank, one per slot. Every rank of the worker has a Programs object and obeys the
/// same Orders.
class Programs {
public:
    /// The fault of an evaluation; a larger value is worse. port_taken: MASTER_PORT was in use. storage: the
    /// evaluation's folder cannot be created; the individual is not at fault.
    enum class Fault : std::int64_t { none, failed, port_taken, not_started, storage };
    /// The state of an evaluation on all ranks together.
    struct Standing {
        bool runs = false;  ///< on at least one rank
        Fault fault = Fault::none;
        bool was_signalled = false;  ///< a signal from outside of Finch ended it on a rank
    };
    struct Place {
        WorkerPlaces ranks;
        int threads = 1;          ///< of this rank's programs
        store::RunDirectory run;  ///< its path is absolute
    };

    /// Collective over the worker. All references and pointers must outlive the object. `meter`: this rank's energy
    /// meter; null: there is none.
    Programs(const config::Config& config, const CommandLine& line, const comm::Group& group,
             process::Launcher& launcher, Place place, energy::Meter* meter = nullptr);

    /// Collective over the worker. Obeys `order`. For `advance`, returns the state of each slot; else returns an empty
    /// vector.
    std::vector<Standing> obey(const Order& order);

    /// Returns lines that this rank's program has printed since the last call: reports and questions.
    [[nodiscard]] std::vector<ReportLine> take_reports(std::uint32_t slot);
    /// Waits up to `seconds`. True if a program of this rank has ended or printed a line.
    [[nodiscard]] bool wait(double seconds);
    /// Returns why the last released evaluation failed, from the rank that ended first. Valid after a `release` Order.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    /// Returns the last lines that a program with exit code 0 wrote to standard error. Returns the lines of the lowest
    /// rank that wrote any; may be empty. Valid after a `release` Order.
    [[nodiscard]] const std::string& last_errors() const noexcept { return last_errors_; }
    /// Returns when this rank's program last printed anything or received the individual, in steady seconds.
    [[nodiscard]] double last_printed(std::uint32_t slot) const { return slots_.at(slot).printed; }
    /// Returns the joules of the last released evaluation in this start, on all ranks. Valid after a `release` Order.
    [[nodiscard]] double joules() const noexcept { return joules_; }
    /// Returns how many seconds before its release the last released evaluation had ended on all ranks; 0: not known.
    /// Valid after a `release` Order.
    [[nodiscard]] double seconds_since_end() const noexcept { return seconds_since_end_; }
    [[nodiscard]] const store::RunDirectory& run() const noexcept { return run_; }
    [[nodiscard]] std::filesystem::path folder_of(search::Id id) const { return run_.evaluation(id); }
    /// Returns the path of one of Finch's own files about an evaluation, next to the evaluation's folder.
    [[nodiscard]] std::filesystem::path file_of(search::Id id, const std::string& what) const {
        return run_.evaluation_file(id, what);
    }
    /// Removes the folder of an evaluation and Finch's files about the evaluation, for all ranks.
    void remove_files(search::Id id) const;

private:
    struct Slot {
        std::optional<process::Child> child{};
        search::Id id{};
        bool runs = false;  ///< the evaluation runs; a persistent program may outlive it
        Fault fault = Fault::none;
        bool was_told = false;  ///< the program was told to end
        std::uint64_t questions = 0;
        std::uint64_t answered = 0;
        std::vector<ReportLine> reports{};
        double epochs = 0;  ///< the epoch of the last report
        std::string problem{};
        std::string last_errors{};
        int signal = 0;             ///< external signal that ended it; 0: none
        double ended_at = 0;        ///< Unix seconds
        bool is_evaluated = false;  ///< true from its start to its release
        double began = 0;           ///< steady seconds
        double printed = 0;         ///< steady seconds
        std::size_t bytes = 0;      ///< printed until then
    };
    /// The end of an evaluation on one rank.
    struct RankEnd {
        double ended_at = 0;
        double seconds_since_end = 0;  ///< by the rank's own clock: the clocks of nodes may differ
        std::string problem{};
        std::string last_errors{};
    };

    void start(const Order& order);
    void look(Slot& slot) const;
    void take_line(Slot& slot, ReportLine line) const;
    void gather_ends(const Slot& slot);
    void judge(Slot& slot, const process::Ended& ended) const;
    void fail(Slot& slot, const std::string& why, Fault fault) const;
    static void answer(Slot& slot, const Order::Answers& answers);
    [[nodiscard]] std::vector<Standing> look(const std::vector<Order::Answers>& answers);
    void release(std::uint32_t number, bool ends_program);
    void count_energy(std::uint32_t number);
    [[nodiscard]] CommandLine::Paths paths_of(search::Id id, bool resumes) const;
    void start_child(Slot& slot, const Order& order, const search::Individual& individual,
                     const CommandLine::Paths& paths);
    void prepare_folder(const search::Individual& individual, const CommandLine::Paths& paths) const;
    [[nodiscard]] process::Program program_of(const Order& order, const search::Individual& individual,
                                              const CommandLine::Paths& paths) const;
    [[nodiscard]] std::string name_of(const std::string& what) const;
    void keep_output(const Slot& slot) const;
    [[nodiscard]] bool starts_here() const;

    const config::CommandObjective& objective_;
    const CommandLine& line_;
    const comm::Group& group_;
    process::Launcher& launcher_;
    store::RunDirectory run_;
    ProgramEnvironment environment_;
    std::vector<Slot> slots_;
    energy::Shares energy_;
    double joules_ = 0;
    double seconds_since_end_ = 0;
    std::string problem_;
    std::string last_errors_;
};

}  // namespace finch::evaluate
