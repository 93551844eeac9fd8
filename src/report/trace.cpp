#include "finch/base/format.hpp"
#include "finch/report/export.hpp"

#include "json_writer.hpp"
#include "population_of.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace finch::report {
namespace {

constexpr std::int32_t run_process = 0;  ///< the run's own line; worker w is process w + 1

/// A slice of a lane, Unix seconds.
struct Slice {
    double begin = 0;
    double end = 0;
    const search::Individual* one = nullptr;
};

using Lanes = std::vector<std::vector<Slice>>;

/// Lays slices, which begin one after another, on as few lanes as hold them side by side: a worker's slots.
Lanes lanes_of(std::vector<Slice> slices) {
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    Lanes lanes;
    for (const Slice& slice : slices) {
        const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                       [&](const auto& there) { return there.back().end <= slice.begin; });
        (lane == lanes.end() ? lanes.emplace_back() : *lane).push_back(slice);
    }
    return lanes;
}

class Trace {
public:
    Trace(const store::ArchiveFacts& facts, const search::Space& space, const search::Measure& measure)
        : facts_(facts), space_(space), measure_(measure) {
        for (const store::Start& start : facts.starts) {
            starts_[start.restart] = start;
        }
        origin_ = facts.starts.empty() ? 0 : facts.starts.front().began;
        const std::map<std::uint32_t, double> seconds = store::seconds_of_starts(facts);
        for (auto& [restart, start] : starts_) {
            start.seconds = seconds.at(restart);
        }
        json_.begin();
        json_.member("displayTimeUnit", "ms");
        json_.begin_list("traceEvents");
        describe_run();
    }

    /// All that a worker did, its parts of the starts one after another on the same lanes.
    void worker(std::int32_t number, const std::vector<const search::Individual*>& individuals) {
        const search::Individual& last = *individuals.back();
        name_process(number + 1, fmt::format("worker {} (island {}, {})", number, last.island, last.node));
        std::map<std::uint32_t, std::vector<Slice>> slices;
        for (const search::Individual* const one : individuals) {
            const auto start = starts_.find(one->attempt.restart);
            const double began = start == starts_.end() ? one->started : std::max(one->started, start->second.began);
            slices[one->attempt.restart].push_back({began, std::max(began, one->finished), one});
        }
        for (auto& [restart, of_start] : slices) {
            const Lanes lanes = lanes_of(std::move(of_start));
            for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
                double free_since = starts_.contains(restart) ? starts_.at(restart).began : lanes[lane].front().begin;
                for (const Slice& part : lanes[lane]) {
                    const auto slot = static_cast<std::int32_t>(lane);
                    if (part.begin > free_since) {
                        slice("waiting", "waiting", number + 1, slot, free_since, part.begin);
                        json_.end();
                    }
                    evaluation(part, number + 1, slot);
                    free_since = part.end;
                }
            }
        }
    }

    [[nodiscard]] std::string take() {
        json_.end_list();
        json_.end();
        return json_.take() + "\n";
    }

private:
    [[nodiscard]] double microseconds(double time) const { return (time - origin_) * 1e6; }

    void name_process(std::int32_t process, const std::string& name) {
        json_.begin();
        json_.member("ph", "M");
        json_.member("name", "process_name");
        json_.member("pid", process);
        json_.begin("args");
        json_.member("name", std::string_view(name));
        json_.end();
        json_.end();
    }

    /// An open object: end() it, after its args.
    void slice(std::string_view name, std::string_view category, std::int32_t process, std::int32_t lane, double begin,
               double end) {
        json_.begin();
        json_.member("ph", "X");
        json_.member("name", name);
        json_.member("cat", category);
        json_.member("pid", process);
        json_.member("tid", lane);
        json_.member("ts", microseconds(begin));
        json_.member("dur", (end - begin) * 1e6);
    }

    void describe_run() {
        name_process(run_process, "the run");
        for (const auto& [restart, start] : starts_) {
            slice(fmt::format("start {}", restart), "start", run_process, 0, start.began, start.began + start.seconds);
            json_.begin("args");
            json_.member("workers", start.workers);
            json_.member("nodes", start.nodes);
            json_.end();
            json_.end();
        }
        for (const search::Event& event : facts_.events) {
            json_.begin();
            json_.member("ph", "i");
            json_.member("s", "g");
            json_.member("name", std::string_view(event.kind));
            json_.member("cat", "event");
            json_.member("pid", run_process);
            json_.member("tid", 0);
            json_.member("ts", microseconds(event.time));
            json_.begin("args");
            json_.member("worker", event.worker);
            json_.member("text", std::string_view(event.text));
            json_.end();
            json_.end();
        }
    }

    void evaluation(const Slice& part, std::int32_t process, std::int32_t lane) {
        const search::Individual& one = *part.one;
        slice(to_text(one.id), word(one.outcome), process, lane, part.begin, part.end);
        json_.begin("args");
        json_.member("outcome", word(one.outcome));
        json_.member(measure_.name, one.ranks_by_loss() ? std::string_view(fmt::format("{}", one.loss)) : "");
        json_.member("operator", word(one.bred_by));
        json_.member("epochs", one.epochs);
        json_.genes("genes", space_, one.genome);
        json_.end();
        json_.end();
        epochs(part, process, lane);
    }

    /// Where they all lie within the slice: otherwise a stop was in between, or nobody said how long they took.
    void epochs(const Slice& part, std::int32_t process, std::int32_t lane) {
        double seconds = 0;
        for (const Epoch& epoch : part.one->curve) {
            seconds += epoch.seconds;
        }
        if (!(seconds <= part.end - part.begin)) {
            return;
        }
        double now = part.begin;
        for (const Epoch& epoch : part.one->curve) {
            slice(fmt::format("epoch {}", epoch.epoch), "epoch", process, lane, now, now + epoch.seconds);
            json_.begin("args");
            json_.member(measure_.name, std::string_view(fmt::format("{}", measure_.of_epoch(epoch))));
            json_.end();
            json_.end();
            now += epoch.seconds;
        }
    }

    const store::ArchiveFacts& facts_;
    const search::Space& space_;
    const search::Measure& measure_;
    std::map<std::uint32_t, store::Start> starts_;
    double origin_ = 0;
    Json json_;
};

}  // namespace

std::string trace(const store::Recovered& recovered, const search::Space& space, const Competition& competition) {
    const search::Population population = population_of(recovered);
    std::map<std::int32_t, std::vector<const search::Individual*>> by_worker;
    for (const auto& [id, one] : population.individuals()) {
        if (one.finished_training() && one.attempt.worker >= 0 && one.started > 0 && !one.is_reused()) {
            by_worker[one.attempt.worker].push_back(&one);
        }
    }
    Trace out(recovered.facts, space, competition.measure);
    for (const auto& [worker, individuals] : by_worker) {
        out.worker(worker, individuals);
    }
    return out.take();
}

}  // namespace finch::report
