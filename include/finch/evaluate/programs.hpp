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
    /// To a slot's questions whether to stop: the first `decided` are, to go on up to `stop_from`.
    struct Answers {
        std::uint64_t decided = 0;
        std::uint64_t stop_from = 0;
    };
    Kind kind = Kind::dismiss;
    std::uint32_t slot = 0;          ///< start, end, release
    std::string individual{};        ///< start: its bytes
    std::int32_t port = 0;           ///< start: free on the leader's node
    bool resumes = false;            ///< start: an earlier start of the run began it
    double grace_seconds = 0;        ///< end
    std::vector<Answers> answers{};  ///< look: by slot
    bool ends_programs = false;      ///< release: a persistent program is not kept
    double seconds_to_next = 0;  ///< until the next order, if that may take longer than followers wait by themselves
};

/// The programs of one worker on this rank, a slot each. Every rank of the worker has one and obeys the same orders.
class Programs {
public:
    /// How an evaluation stands on all ranks together.
    struct Standing {
        bool runs = false;            ///< on any rank
        bool failed = false;          ///< on any rank
        bool storage_is_bad = false;  ///< on any rank: its folder cannot be made, for no fault of its own
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
    /// Whether the program could not be started at all, on this rank.
    [[nodiscard]] bool was_not_started(std::uint32_t slot) const { return slots_.at(slot).was_not_started; }
    /// Why the last evaluation of `slot` failed, of the lowest rank that has something to say. After `release`.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    /// Whether it was ended by a signal that came from elsewhere, on this rank.
    [[nodiscard]] bool was_signalled(std::uint32_t slot) const;
    [[nodiscard]] std::filesystem::path folder_of(search::Id id) const { return place_.run.evaluation(id); }
    /// What Finch itself keeps of an evaluation, beside its folder.
    [[nodiscard]] std::filesystem::path file_of(search::Id id, const std::string& what) const {
        return place_.run.evaluation_file(id, what);
    }
    /// Of all ranks, its folder and what Finch keeps of it.
    void remove_files(search::Id id) const;

private:
    struct Slot {
        std::optional<process::Child> child{};
        search::Id id{};
        bool runs = false;  ///< the evaluation; a persistent program may outlive it
        bool failed = false;
        bool storage_is_bad = false;
        bool was_told = false;  ///< to end
        bool was_not_started = false;
        std::uint64_t questions = 0;
        std::uint64_t answered = 0;
        std::vector<ReportLine> reports{};
        std::string problem{};
        int signal = 0;
    };

    void start(const ProgramOrder& order);
    void look(Slot& slot) const;
    void judge(Slot& slot, const process::Ended& ended) const;
    void fail(Slot& slot, const std::string& why, bool storage_is_bad) const;
    static void answer(Slot& slot, const ProgramOrder::Answers& answers);
    [[nodiscard]] std::vector<Standing> look(const std::vector<ProgramOrder::Answers>& answers);
    void release(Slot& slot, bool ends_program);
    void prepare_folder(const search::Individual& individual, const CommandLine::Paths& paths) const;
    [[nodiscard]] process::Program program_of(const ProgramOrder& order, const search::Individual& individual,
                                              const CommandLine::Paths& paths) const;
    [[nodiscard]] std::string name_of(const std::string& what) const;
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
