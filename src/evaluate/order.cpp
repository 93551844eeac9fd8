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

// A snapshot may be in an Order's bytes: they are gone when it is obeyed.
void send_order(const comm::Group& group, const Order& order) {
    Bytes bytes = encode(order);
    group.broadcast(bytes);
}

Order receive_order(const comm::Group& group, const Order& last) {
    Bytes bytes;
    group.broadcast(bytes, std::max(seconds_of_silence, last.seconds_to_next));
    return decode_order(bytes);
}

Bytes encode(const Order& order) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put(order.kind);
    writer.put(order.slot);
    writer.put_all(std::span<const Order::Steps>(order.steps));
    writer.put(order.seconds_to_next);
    if (order.kind == Order::Kind::start) {
        search::write_individual(order.individual, true, bytes);
        write_arrays(order.snapshot, writer);
        write_arrays(order.weights, writer);
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
    order.seconds_to_next = reader.get<double>();
    if (order.kind == Order::Kind::start) {
        order.individual = search::read_individual(reader);
        order.snapshot = read_arrays(reader);
        order.weights = read_arrays(reader);
    }
    return order;
}

}  // namespace finch::evaluate
