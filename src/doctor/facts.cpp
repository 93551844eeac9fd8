// A rank's facts as bytes, on their way to world rank 0.
#include "finch/doctor/facts.hpp"

#include "finch/base/bytes.hpp"

#include <span>

namespace finch::doctor {
namespace {

void put(ByteWriter& writer, const cluster::Machine& machine) {
    writer.put_text(machine.cpu);
    writer.put_text(machine.instructions);
    writer.put_all(std::span(machine.cpus));
    writer.put(machine.cpus_online);
    for (const std::int64_t value : {machine.memory_bytes, machine.memory_limit_bytes, machine.address_space_bytes,
                                     machine.locked_bytes, machine.open_files}) {
        writer.put(value);
    }
    writer.put(machine.nvidia_devices);
}

cluster::Machine get_machine(ByteReader& reader) {
    cluster::Machine machine;
    machine.cpu = reader.get_text();
    machine.instructions = reader.get_text();
    machine.cpus = reader.get_all<int>();
    machine.cpus_online = reader.get<int>();
    for (std::int64_t* value : {&machine.memory_bytes, &machine.memory_limit_bytes, &machine.address_space_bytes,
                                &machine.locked_bytes, &machine.open_files}) {
        *value = reader.get<std::int64_t>();
    }
    machine.nvidia_devices = reader.get<int>();
    return machine;
}

void put(ByteWriter& writer, const backend::CudaVersions& versions) {
    writer.put(versions.built);
    writer.put(versions.driver);
    writer.put(versions.runtime);
    writer.put(versions.cudnn);
    writer.put(versions.cudnn_built);
    writer.put(versions.cublas);
    writer.put_text(versions.problem);
}

backend::CudaVersions get_versions(ByteReader& reader) {
    backend::CudaVersions versions;
    versions.built = reader.get<bool>();
    versions.driver = reader.get<int>();
    versions.runtime = reader.get<int>();
    versions.cudnn = reader.get<std::int64_t>();
    versions.cudnn_built = reader.get<std::int64_t>();
    versions.cublas = reader.get<std::int64_t>();
    versions.problem = reader.get_text();
    return versions;
}

void put(ByteWriter& writer, const backend::DeviceDescription& device) {
    writer.put(device.index);
    writer.put_text(device.uuid);
    writer.put_text(device.name);
    writer.put_text(device.pci_bus_id);
    writer.put(device.memory_bytes);
    writer.put(device.capability);
    writer.put_text(std::string(device.reaches.begin(), device.reaches.end()));
}

backend::DeviceDescription get_device(ByteReader& reader) {
    backend::DeviceDescription device;
    device.index = reader.get<int>();
    device.uuid = reader.get_text();
    device.name = reader.get_text();
    device.pci_bus_id = reader.get_text();
    device.memory_bytes = reader.get<std::int64_t>();
    device.capability = reader.get<int>();
    const std::string reaches = reader.get_text();
    device.reaches.assign(reaches.begin(), reaches.end());
    return device;
}

void put(ByteWriter& writer, const store::FileSystem& files) {
    writer.put_text(files.path);
    writer.put_text(files.kind);
    for (const bool works : {files.writes, files.locks, files.syncs, files.hard_links}) {
        writer.put(works);
    }
    writer.put(files.sync_seconds);
    writer.put(files.free_bytes);
    writer.put_text(files.problem);
}

store::FileSystem get_files(ByteReader& reader) {
    store::FileSystem files;
    files.path = reader.get_text();
    files.kind = reader.get_text();
    for (bool* works : {&files.writes, &files.locks, &files.syncs, &files.hard_links}) {
        *works = reader.get<bool>();
    }
    files.sync_seconds = reader.get<double>();
    files.free_bytes = reader.get<std::int64_t>();
    files.problem = reader.get_text();
    return files;
}

}  // namespace

std::string pack_facts(const RankFacts& facts) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put_text(facts.program);
    writer.put_text(facts.node);
    put(writer, facts.machine);
    put(writer, facts.cuda);
    writer.put(static_cast<std::uint32_t>(facts.devices.size()));
    for (const backend::DeviceDescription& device : facts.devices) {
        put(writer, device);
    }
    writer.put(static_cast<std::uint32_t>(facts.variables.size()));
    for (const auto& [name, value] : facts.variables) {
        writer.put_text(name);
        writer.put_text(value);
    }
    put(writer, facts.file_system);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RankFacts unpack_facts(const std::string& packed) {
    ByteReader reader(std::as_bytes(std::span(packed)));
    RankFacts facts;
    facts.program = reader.get_text();
    facts.node = reader.get_text();
    facts.machine = get_machine(reader);
    facts.cuda = get_versions(reader);
    for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
        facts.devices.push_back(get_device(reader));
    }
    for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
        std::string name = reader.get_text();
        facts.variables.emplace(std::move(name), reader.get_text());
    }
    facts.file_system = get_files(reader);
    return facts;
}

}  // namespace finch::doctor
