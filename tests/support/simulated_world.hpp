#pragma once

#include "finch/base/files.hpp"
#include "finch/island/worker.hpp"
#include "finch/search/pruning.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace finch::testing {

/// A mailbox that counts the messages of its leader.
class CountingMailbox : public comm::Mailbox {
public:
    explicit CountingMailbox(comm::Mailbox& mailbox) : mailbox_(mailbox) {}
    int self() const override { return mailbox_.self(); }
    int leaders() const override { return mailbox_.leaders(); }
    void send(int to, comm::Message message, bool counted) override {
        search::RecordReader reader(*message, 7, "message");
        const auto kind = reader.next()->index();
        sent[kind] += to != self() ? 1 : 0;
        sent_to_0[kind] += to == 0 && self() != 0 ? 1 : 0;
        mailbox_.send(to, std::move(message), counted);
    }
    std::vector<comm::Envelope> take() override { return mailbox_.take(); }
    void begin_closing() override { mailbox_.begin_closing(); }
    bool closed() override { return mailbox_.closed(); }

    std::map<std::size_t, std::size_t> sent;       ///< messages to others, by kind of record
    std::map<std::size_t, std::size_t> sent_to_0;  ///< messages to world rank 0, by kind of record

private:
    comm::Mailbox& mailbox_;
};

/// A journal in memory. Its records outlive the worker, like a file outlives a process.
class MemoryJournal : public island::Journal {
public:
    explicit MemoryJournal(std::vector<Bytes>& records) : records_(records) {}
    void write(const Bytes& record) override {
        if (full) {
            throw ApiError("write: no space left on device");
        }
        records_.push_back(record);
    }
    void sync(bool) override {
        if (unsynced) {
            throw ApiError("fdatasync: disk quota exceeded");
        }
    }
    void forget(std::uint64_t records) override { forgotten = records; }

    bool full = false;      ///< true: write() fails
    bool unsynced = false;  ///< true: sync() fails
    std::uint64_t forgotten = 0;

private:
    std::vector<Bytes>& records_;
};

/// An evaluator with the loss Σx² and the number of parameters 1e6 (2 − x0)². An evaluation takes a number of advance()
/// calls (looks) that depends on the id. With `loss_after`, each advance() trains an epoch.
class SteppedEvaluator : public island::Evaluator {
public:
    SteppedEvaluator(int slots, int longest) : slots_(static_cast<std::size_t>(slots)), longest_(longest) {}
    bool has_free_slot() const override { return running_.size() < slots_; }
    bool idle() const override { return running_.empty(); }
    bool can_exist(const search::Genome& genome) const override { return exists(genome); }
    bool wants_soon() const override { return has_free_slot(); }
    void start(search::Individual individual, const search::Population&) override {
        if (is_disk_full) {
            throw StorageError("no space left");
        }
        started.push_back(individual.id);
        beside[individual.id] = running_.size();
        for (const Running& other : running_) {
            joined_by.push_back(other.individual.id);
        }
        const int takes =
            looks > 0 ? looks
                      : 1 + static_cast<int>(individual.id.value * 2654435761U % static_cast<unsigned>(longest_));
        running_.push_back({std::move(individual), takes});
    }
    std::vector<search::Individual> advance(const search::Population& population) override {
        std::vector<search::Individual> ended;
        std::erase_if(running_, [&](Running& running) {
            if (loss_after) {
                return train_epoch(running, population, ended);
            }
            if (--running.looks > 0) {
                return false;
            }
            running.individual.started = 1;
            running.individual.finished = now != nullptr ? *now : 0;
            if (fails(running.individual)) {
                running.individual.outcome = failure;
                ended.push_back(running.individual);
                return true;
            }
            running.individual.outcome = search::Outcome::evaluated;
            running.individual.curve.resize(epochs);
            running.individual.loss = 0;
            for (const double x : running.individual.genome) {
                running.individual.loss += x * x;
            }
            const double apart = 2 - (running.individual.genome.empty() ? 0 : running.individual.genome[0]);
            running.individual.parameters = static_cast<std::int64_t>(1e6 * apart * apart);
            running.individual.loss += noise * static_cast<double>(running.individual.id.value * 2654435761U % 1009U);
            ended.push_back(running.individual);
            return true;
        });
        return ended;
    }
    std::vector<search::Individual> take_progress() override {
        std::vector<search::Individual> told;
        for (const Running& running : running_) {
            if (!running.losses.empty()) {
                told.push_back(running.individual);
            }
        }
        return told;
    }
    void finished(const search::Individual&, const search::Population&) override {}
    std::vector<search::Individual> checkpoint() override {
        ++checkpoints;
        on_checkpoint();
        std::vector<search::Individual> saved;
        for (const Running& running : running_) {
            saved.push_back(running.individual);
            saved.back().progress = 1.0 / (1 + running.looks);
            saved.back().progress += static_cast<double>(running.losses.size());
        }
        return saved;
    }
    double checkpoint_seconds() const override { return seconds_of_checkpoint; }
    void dismiss() override {}

    bool is_disk_full = false;
    std::vector<search::Id> started;
    [[nodiscard]] std::size_t running() const { return running_.size(); }

    int checkpoints = 0;
    std::function<void()> on_checkpoint = [] {};
    std::size_t epochs = 0;                                                          ///< epochs per learning curve
    std::function<double(const search::Individual&, std::size_t epoch)> loss_after;  ///< may be empty
    search::PruningOptions pruning;
    double seconds_of_checkpoint = 0;
    double noise = 0;                          ///< added to a loss, times a number below 1009 that depends on the id
    int looks = 0;                             ///< advance() calls of every evaluation; 0: depends on the id
    std::map<search::Id, std::size_t> beside;  ///< by individual: evaluations that ran at its start
    std::vector<search::Id> joined_by;         ///< individuals that ran while another was started
    std::function<bool(const search::Genome&)> exists = [](const search::Genome&) { return true; };
    std::function<bool(const search::Individual&)> fails = [](const search::Individual&) { return false; };
    search::Outcome failure = search::Outcome::failed;
    const double* now = nullptr;  ///< the clock; null: `finished` stays 0

private:
    struct Running {
        search::Individual individual;
        int looks = 0;
        std::vector<double> losses{};  ///< after each epoch
    };

    bool train_epoch(Running& running, const search::Population& population,
                     std::vector<search::Individual>& ended) const {
        search::Individual& individual = running.individual;
        running.losses.push_back(loss_after(individual, running.losses.size() + 1));
        individual.epochs = std::max(individual.epochs, static_cast<std::int32_t>(running.losses.size()));
        const bool is_last = running.losses.size() == epochs;
        const bool is_pruned =
            !is_last &&
            search::ends_early(pruning, running.losses, static_cast<std::int64_t>(epochs), population, individual);
        if (is_last || is_pruned) {
            individual.outcome = is_pruned ? search::Outcome::pruned : search::Outcome::evaluated;
            individual.epochs = static_cast<std::int32_t>(running.losses.size());
            individual.loss = *std::min_element(running.losses.begin(), running.losses.end());
            ended.push_back(individual);
        }
        return is_last || is_pruned;
    }

    std::size_t slots_;
    int longest_;
    std::vector<Running> running_;
};

class MemoryArchive : public island::Archive {
public:
    void event(const search::Event& event) override { events.push_back(event); }
    void report(const search::WorkerReport& report) override { reports.push_back(report); }
    bool write(const search::Population& population) override {
        on_write();
        written = population.size();
        return !full;
    }
    std::function<void()> on_write = [] {};
    std::vector<search::Event> events;
    std::vector<search::WorkerReport> reports;
    std::size_t written = 0;
    bool full = false;
};

class SilentObserver : public island::Observer {
public:
    void finished(const search::Individual&, const search::Population&) override { ++heard; }
    void tick(const search::Population&) override {}
    void said(const std::string& text) override { sayings.push_back(text); }
    void warned(const std::string& text) override { warnings.push_back(text); }
    std::size_t heard = 0;
    std::vector<std::string> sayings;
    std::vector<std::string> warnings;
};

}  // namespace finch::testing
