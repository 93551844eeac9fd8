#pragma once

#include "finch/base/bytes.hpp"
#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/evaluate/command_line.hpp"
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

/// What all ranks of a worker do with their programs next: the leader decides, so a worker cannot split.
struct ProgramOrder {
    enum class Kind : std::uint32_t { start, look, signal, end, release, wait, dismiss };
    Kind kind = Kind::dismiss;
    std::uint32_t slot = 0;    ///< start, end, release
    std::string individual{};  ///< start: its bytes
    std::int32_t port = 0;     ///< start: free on the leader's node
    bool resumes = false;      ///< start: an earlier start of the run began it
    double grace_seconds = 0;  ///< end
    std::vector<std::uint8_t>
        answers{};               ///< look: to the questions in `slot` whether to stop, as far as they are decided
    double seconds_to_next = 0;  ///< until the next order, if that may take longer than followers wait by themselves
};

/// The programs of one worker on this rank, a slot each. Every rank of the worker has one and obeys the same orders.
class Programs {
public:
    /// How an evaluation stands on all ranks together.
    struct Standing {
        bool runs = false;    ///< on any rank
        bool failed = false;  ///< on any rank
    };
    /// What each rank of the worker is told of the others.
    struct Place {
        std::vector<std::string> nodes;  ///< by rank of the worker
        std::vector<int> local_ranks;    ///< by rank of the worker: among all ranks of its node
        int threads = 1;
        store::RunDirectory run;  ///< its path is absolute
    };

    /// Collective over the worker. All must outlive it.
    Programs(const config::Config& config, const CommandLine& line, const comm::Group& group,
             process::Launcher& launcher, Place place);

    /// Collective over the worker. Does what `order` says. For `look` how each slot stands; else nothing.
    std::vector<Standing> obey(const ProgramOrder& order);
    /// Collective over the worker. Followers: receives orders and obeys, until dismissed.
    void follow();
    /// Collective over the worker. The leader's order, to all.
    std::vector<Standing> command(const ProgramOrder& order);

    /// What this rank's program has said since the last call.
    [[nodiscard]] std::vector<ReportLine> take_reports(std::uint32_t slot);
    /// Whether this rank's program has just ended, or said something: there is something to look at.
    [[nodiscard]] bool wait(double seconds);
    /// Questions whether to stop that this rank's program has asked and nobody has answered.
    [[nodiscard]] std::size_t open_questions(std::uint32_t slot) const;
    /// Why the last evaluation of `slot` failed, of the lowest rank that has something to say. After `release`.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    /// Whether it was ended by a signal that came from elsewhere, on this rank.
    [[nodiscard]] bool was_signalled(std::uint32_t slot) const;
    [[nodiscard]] std::filesystem::path folder_of(search::Id id) const { return place_.run.evaluation(id); }

private:
    struct Slot {
        std::optional<process::Child> child;
        search::Id id;
        bool runs = false;  ///< the evaluation; a persistent program may outlive it
        bool failed = false;
        bool was_told = false;  ///< to end
        std::size_t questions = 0;
        std::size_t answered = 0;
        std::vector<ReportLine> reports;
        std::string problem;
        int signal = 0;
    };

    void start(const ProgramOrder& order);
    void look(Slot& slot);
    void judge(Slot& slot, const process::Ended& ended);
    void answer(Slot& slot, const std::vector<std::uint8_t>& answers);
    void release(Slot& slot);
    void keep_output(const Slot& slot) const;
    [[nodiscard]] std::vector<std::string> environment_of(const ProgramOrder& order,
                                                          const search::Individual& individual) const;
    [[nodiscard]] bool starts_here() const;

    const config::Config& config_;
    const config::CommandObjective& objective_;
    const CommandLine& line_;
    const comm::Group& group_;
    process::Launcher& launcher_;
    Place place_;
    std::vector<std::string> base_environment_;
    std::string devices_;  ///< CUDA_VISIBLE_DEVICES of the worker's ranks on this node; empty: left alone
    std::vector<Slot> slots_;
    std::string problem_;
};

/// A port of TCP that nothing on this node listens at now; 0 if none can be had.
[[nodiscard]] std::int32_t free_port();

}  // namespace finch::evaluate
