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

/// The programs of one worker on this rank, a slot each. Every rank of the worker has one and obeys the same orders.
class Programs {
public:
    /// Fault of an evaluation; a larger one is worse. port_taken: MASTER_PORT was in use. storage: its folder cannot be
    /// made, which is not its own fault.
    enum class Fault : std::int64_t { none, failed, port_taken, not_started, storage };
    /// How an evaluation stands on all ranks together.
    struct Standing {
        bool runs = false;  ///< on any rank
        Fault fault = Fault::none;
        bool was_signalled = false;  ///< a rank was ended by a signal that came from elsewhere
        bool waits = false;          ///< it has ended on a rank, without a fault
    };
    struct Place {
        WorkerPlaces ranks;
        int threads = 1;          ///< of this rank's programs
        store::RunDirectory run;  ///< its path is absolute
    };

    /// Collective over the worker. All must outlive it. `meter`: this rank's; null: there is none.
    Programs(const config::Config& config, const CommandLine& line, const comm::Group& group,
             process::Launcher& launcher, Place place, energy::Meter* meter = nullptr);

    /// Collective over the worker. Does what `order` says. For `advance` how each slot stands; else nothing.
    std::vector<Standing> obey(const Order& order);

    /// Lines that this rank's program has printed since the last call: reports, questions, lines with a loss that are
    /// no report, 'finch done' of another individual.
    [[nodiscard]] std::vector<ReportLine> take_reports(std::uint32_t slot);
    /// Whether this rank's program has just ended, or said something: there is something to look at.
    [[nodiscard]] bool wait(double seconds);
    /// Why the last evaluation of `slot` failed, of the rank that ended first. After `release`.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    /// A line that looks like a report but is none, of the lowest rank that has one; may be empty. After `release`.
    [[nodiscard]] const std::string& near_miss() const noexcept { return near_miss_; }
    /// The last lines of standard error of a program that ended with exit code 0, of the lowest rank that has some; may
    /// be empty. After `release`.
    [[nodiscard]] const std::string& last_errors() const noexcept { return last_errors_; }
    /// Steady seconds: when this rank's program said something last, or was given the individual.
    [[nodiscard]] double last_heard(std::uint32_t slot) const { return slots_.at(slot).heard; }
    /// Joules of the last evaluation of `slot` in this start, on all ranks. After `release`.
    [[nodiscard]] double joules() const noexcept { return joules_; }
    /// Empty if the devices that programs see are as many as they need.
    [[nodiscard]] const std::string& device_problem() const noexcept { return environment_.device_problem(); }
    [[nodiscard]] std::filesystem::path folder_of(search::Id id) const { return run_.evaluation(id); }
    /// A file of Finch's own about an evaluation, beside its folder.
    [[nodiscard]] std::filesystem::path file_of(search::Id id, const std::string& what) const {
        return run_.evaluation_file(id, what);
    }
    /// Removes the folder of an evaluation and Finch's files about it, of all ranks.
    void remove_files(search::Id id) const;

private:
    struct Slot {
        std::optional<process::Child> child{};
        search::Id id{};
        bool runs = false;  ///< the evaluation; a persistent program may outlive it
        Fault fault = Fault::none;
        bool was_told = false;  ///< to end
        std::uint64_t questions = 0;
        std::uint64_t answered = 0;
        std::vector<ReportLine> reports{};
        double epochs = 0;  ///< of the last report in this start, as it was said
        std::string problem{};
        std::string near_miss{};
        std::string last_errors{};
        int signal = 0;             ///< that came from elsewhere and ended it
        double ended_at = 0;        ///< Unix seconds
        bool is_evaluated = false;  ///< from its start to its release
        double began = 0;           ///< steady seconds
        double heard = 0;           ///< steady seconds
    };
    /// How an evaluation ended on one rank.
    struct RankEnd {
        double ended_at = 0;
        std::string problem{};
        std::string near_miss{};
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
    std::string problem_;
    std::string near_miss_;
    std::string last_errors_;
};

}  // namespace finch::evaluate
