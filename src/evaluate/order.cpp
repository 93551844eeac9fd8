#include "finch/evaluate/order.hpp"

#include "finch/cluster/signals.hpp"

namespace finch::evaluate {

Status agree(const comm::Group& group, Status mine) {
    const auto all =
        group.maximum({static_cast<std::int64_t>(mine), static_cast<std::int64_t>(cluster::stop_request())});
    cluster::request_stop(static_cast<StopRequest>(all[1]));
    return static_cast<Status>(all[0]);
}

Bytes encode(const Order& order) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put(order.kind);
    writer.put(order.slot);
    writer.put(order.batches);
    writer.put(order.worked);
    writer.put(order.answers);
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
    order.batches = reader.get<std::uint32_t>();
    order.worked = reader.get<double>();
    order.answers = reader.get<Order::Answers>();
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
