#include "finch/island/archivist.hpp"

#include <algorithm>
#include <utility>

namespace finch::island {

Archivist::Archivist(Archive& archive, LeaseServer leases, Failures failures, double seconds,
                     std::function<double()> steady_seconds)
    : archive_(archive),
      leases_(std::move(leases)),
      failed_(std::move(failures)),
      seconds_(seconds),
      steady_seconds_(std::move(steady_seconds)),
      merged_(failed_.workers()),
      in_last_archive_(merged_),
      last_archive_(steady_seconds_()) {}

void Archivist::receive(const search::LeaseMessage& message) {
    if (message.kind == search::LeaseMessage::Kind::request) {
        requests_.push_back(message);
    } else {
        if (message.kind == search::LeaseMessage::Kind::done) {
            failed_.left(message.worker);
        }
        static_cast<void>(leases_.answer(message));
    }
}

std::vector<search::LeaseMessage> Archivist::answers(const search::Population& population) {
    std::vector<search::LeaseMessage> answers;
    if (requests_.empty() || leases_.waits_for_final_choice()) {
        return answers;  // most of many workers may wait, and this function is called often
    }
    const double now = steady_seconds_();
    std::erase_if(requests_, [&](const search::LeaseMessage& request) {
        if (failed_.must_wait(request.worker, now) && leases_.has_lease_for(request.worker)) {
            return false;
        }
        auto answer = leases_.answer(request);
        if (answer) {
            if (answer->kind == search::LeaseMessage::Kind::grant && answer->repeat.of == search::Id{}) {
                failed_.pause(request.worker, now);
                answer->repeat.of = failed_.take_retry(request.worker, population).value_or(search::Id{});
            }
            answers.push_back(std::move(*answer));
        }
        return answer.has_value();
    });
    return answers;
}

void Archivist::merge(const search::Record& record, int from) {
    if (const auto* report = std::get_if<search::WorkerReport>(&record)) {
        archive_.report(*report);  // not journaled
        return;
    }
    if (const auto* event = std::get_if<search::Event>(&record)) {
        archive_.event(*event);
    }
    ++merged_[static_cast<std::size_t>(from)];
}

double Archivist::next_archive() const {
    return last_archive_ + std::max(seconds_, 100 * cost_);
}

std::vector<std::uint64_t> Archivist::write_archive(search::Population& population) {
    const double start = steady_seconds_();
    const bool is_written = archive_.write(population);
    last_archive_ = steady_seconds_();
    cost_ = last_archive_ - start;
    failures_ = is_written ? 0 : failures_ + 1;
    if (!is_written) {
        return {};
    }
    for (const search::Id id : archive_.curves_kept()) {
        population.forget_curve(id);
    }
    return std::exchange(in_last_archive_, merged_);
}

}  // namespace finch::island
