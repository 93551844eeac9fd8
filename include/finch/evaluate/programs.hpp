#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
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

/// The programs of one worker on this rank, one per slot. Every rank of the worker has a Programs object, and all ranks
/// call its functions in the same order.
class Programs {
public:
    struct Place {
        WorkerPlaces ranks;
        int threads = 1;           ///< of this rank's programs
        store::RunDirectory run;   ///< its path is absolute
        std::uint64_t number = 0;  ///< of the run
    };

    /// Collective over the worker. All references must outlive the object.
    Programs(const config::Config& config, const CommandLine& line, const comm::Group& group,
             process::Launcher& launcher, Place place);

    /// Collective over the worker. A failure in this function ends the evaluation. All ranks learn about the failure
    /// from the next look(). `epochs`: the last epoch that the program reported in an earlier start; 0: none.
    void start(const Order& order, std::int32_t epochs);
    /// Collective over the worker. Reads what the program has printed, and answers its questions.
    [[nodiscard]] Answer look(std::uint32_t number, const Order::Answers& answers);
    /// Forwards a stop to the programs.
    void signal();
    /// Ends the program of a slot.
    void end(std::uint32_t number, double grace_seconds);
    /// Collective over the worker. Ends an evaluation. `ends_program`: also ends a persistent program.
    void release(std::uint32_t number, bool ends_program);
    /// Ends all programs.
    void clear() { slots_.clear(); }

    /// Returns lines that this rank's program has printed since the last call: reports and questions.
    [[nodiscard]] std::vector<ReportLine> take_reports(std::uint32_t slot);
    /// Waits up to `seconds`. True if a program of this rank has ended or printed a line.
    [[nodiscard]] bool wait(double seconds);
    /// Returns why the last released evaluation failed, from the rank that ended first. Valid after release().
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    /// Returns the last lines that a program with exit code 0 wrote to standard error. Returns the lines of the lowest
    /// rank that wrote any; may be empty. Valid after release().
    [[nodiscard]] const std::string& last_errors() const noexcept { return last_errors_; }
    /// Returns when this rank's program last printed anything or received the individual, in steady seconds.
    [[nodiscard]] double last_printed(std::uint32_t slot) const { return slots_.at(slot).printed; }
    /// Returns how many seconds before its release the last released evaluation had ended on all ranks; 0: not known.
    /// Valid after release().
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
        bool runs = false;                ///< the evaluation runs; a persistent program may outlive it
        Status status = Status::running;  ///< running: no fault
        bool was_told = false;            ///< the program was told to end
        std::uint64_t questions = 0;
        std::uint64_t answered = 0;
        std::vector<ReportLine> reports{};
        double epochs = 0;  ///< the epoch of the last report
        std::string problem{};
        std::string last_errors{};
        int signal = 0;         ///< external signal that ended it; 0: none
        double ended_at = 0;    ///< Unix seconds
        double printed = 0;     ///< steady seconds
        std::size_t bytes = 0;  ///< printed until then
    };
    /// The end of an evaluation on one rank.
    struct RankEnd {
        double ended_at = 0;
        double seconds_since_end = 0;  ///< by the rank's own clock: the clocks of nodes may differ
        std::string problem{};
        std::string last_errors{};
    };

    void look(Slot& slot) const;
    void take_line(Slot& slot, ReportLine line) const;
    void gather_ends(const Slot& slot);
    void judge(Slot& slot, const process::Ended& ended) const;
    void fail(Slot& slot, const std::string& why, Status status) const;
    static void answer(Slot& slot, const Order::Answers& answers);
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
    double seconds_since_end_ = 0;
    std::string problem_;
    std::string last_errors_;
};

/// Returns the last lines that a program wrote, in their final form on a terminal: without escape sequences, and with
/// only the last state of a progress bar. Leaves out rows of dashes and the like, and what search::up_to_reason() does.
[[nodiscard]] std::string last_lines(const std::string& output);

[[nodiscard]] std::string how_it_ended(const process::Ended& ended);

/// True if a program's output says that its port is in use.
[[nodiscard]] bool is_port_taken(const std::string& said);

/// Returns the stop signal that ended the program or, if a shell reports it (exit code 128 + signal), the shell's
/// child; 0 if none did.
[[nodiscard]] int signal_of_stop(const process::Ended& ended);

}  // namespace finch::evaluate
