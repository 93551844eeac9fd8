#include "finch/evaluate/order.hpp"

#include "finch/cluster/signals.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

namespace finch::evaluate {

Status agree(const comm::Group& group, Status mine) {
    const auto all =
        group.maximum({static_cast<std::int64_t>(mine), static_cast<std::int64_t>(cluster::stop_request())});
    cluster::request_stop(static_cast<StopRequest>(all[1]));
    return static_cast<Status>(all[0]);
}

double sum(const comm::Group& group, double mine) {
    const std::vector<double> all = group.gather(std::array{mine});
    return std::accumulate(all.begin(), all.end(), 0.0);
}

// An Order's bytes may contain a snapshot, so they are freed before the Order is obeyed.
void send_order(const comm::Group& group, const Order& order) {
    Bytes bytes = encode(order);
    group.broadcast(bytes);
}

void follow(const comm::Group& group, const std::function<void(const Order&)>& obey, train::Profile* profile) {
    constexpr double seconds_to_first_order = 600;  // the leader reads the run first
    Order order{.kind = Order::Kind::wait, .seconds_to_next = seconds_to_first_order};
    do {
        Bytes bytes;
        {
            const backend::LapScope scope(profile, backend::Activity::wait);
            group.broadcast(bytes, std::max(seconds_of_silence, order.seconds_to_next));
        }
        order = decode_order(bytes);
        obey(order);
    } while (order.kind != Order::Kind::dismiss);
}

void obey_alone(const comm::Group& group, const Order& order) {
    if (order.kind == Order::Kind::wait) {
        static_cast<void>(agree(group, Status::running));
    }
}

Bytes encode(const Order& order) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put(order.kind);
    writer.put(order.slot);
    writer.put_all(std::span<const Order::Steps>(order.steps));
    writer.put_all(std::span<const Order::Answers>(order.answers));
    writer.put(order.grace_seconds);
    writer.put(order.ends_programs);
    writer.put(order.seconds_to_next);
    if (order.kind == Order::Kind::start) {
        search::write_individual(order.individual, true, bytes);
        write_arrays(order.snapshot, writer);
        writer.put(order.continues_parent);
        write_arrays(order.weights, writer);
        writer.put(order.port);
        writer.put(order.resumes);
    }
    return bytes;
}

Order decode_order(const Bytes& bytes) {
    ByteReader reader(bytes);
    Order order;
    order.kind = reader.get<Order::Kind>();
    if (order.kind > Order::Kind::dismiss) {
        throw FileError("an order of no kind");
    }
    order.slot = reader.get<std::uint32_t>();
    order.steps = reader.get_all<Order::Steps>();
    order.answers = reader.get_all<Order::Answers>();
    order.grace_seconds = reader.get<double>();
    order.ends_programs = reader.get<bool>();
    order.seconds_to_next = reader.get<double>();
    if (order.kind == Order::Kind::start) {
        order.individual = search::read_individual(reader);
        order.snapshot = read_arrays(reader);
        order.continues_parent = reader.get<bool>();
        order.weights = read_arrays(reader);
        order.port = reader.get<std::int32_t>();
        order.resumes = reader.get<bool>();
    }
    return order;
}

}  // namespace finch::evaluate
