#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/hdf5/file.hpp"
#include "finch/hdf5/table.hpp"
#include "finch/store/archive.hpp"

#include "archive_columns.hpp"
#include "archive_format.hpp"

#include <algorithm>

namespace finch::store {
namespace {

using Ids = std::vector<std::uint64_t>;
using Smalls = std::vector<std::int32_t>;

void check_format(hid_t file) {
    const std::string format = hdf5::read_text_attribute(file, "format");
    const std::int64_t version = hdf5::read_int_attribute(file, "version");
    if (format != archive_format || version != archive_version) {
        throw FileError(fmt::format("it holds '{}' version {}, where '{}' version {} is read", format, version,
                                    archive_format, archive_version));
    }
}

ArchiveFacts read_facts(hid_t file) {
    ArchiveFacts facts;
    facts.run = static_cast<std::uint64_t>(hdf5::read_int_attribute(file, "run"));
    facts.seed = static_cast<std::uint64_t>(hdf5::read_int_attribute(file, "seed"));
    facts.restarts = static_cast<std::uint32_t>(hdf5::read_int_attribute(file, "restarts"));
    facts.config = hdf5::read_text(file, "config");
    facts.data_fingerprint = hdf5::read_text_attribute(file, "data_fingerprint");
    facts.workers = static_cast<int>(hdf5::read_int_attribute(file, "workers"));
    facts.islands = static_cast<int>(hdf5::read_int_attribute(file, "islands"));
    facts.state = hdf5::read_text_attribute(file, "state");
    facts.budget_evaluations = hdf5::read_int_attribute(file, "budget_evaluations");
    facts.events = events_of(hdf5::read_table(file, "events"));
    for (const search::WorkerReport& report : reports_of(hdf5::read_table(file, "workers"))) {
        facts.reports[{report.restart, report.worker}] = report;
    }
    return facts;
}

void read_places(hid_t file, Archive& archive) {
    const Columns homes = hdf5::read_table(file, "homes");
    const auto& moved = hdf5::column<Ids>(homes, "individual");
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const auto version =
            static_cast<std::uint32_t>(hdf5::column<std::vector<std::int64_t>>(homes, "version").at(i));
        archive.homes.push_back(
            {search::Id{moved[i]},
             {version, hdf5::column<Smalls>(homes, "writer").at(i), hdf5::column<Smalls>(homes, "island").at(i)}});
    }
    const Columns memberships = hdf5::read_table(file, "memberships");
    const auto& copied = hdf5::column<Ids>(memberships, "individual");
    for (std::size_t i = 0; i < copied.size(); ++i) {
        archive.memberships.emplace_back(search::Id{copied[i]}, hdf5::column<Smalls>(memberships, "island").at(i));
    }
}

}  // namespace

std::optional<Archive> read_archive(const std::filesystem::path& path, std::vector<std::string>& problems) {
    const auto file = hdf5::open_file_or_previous(path, problems);
    if (!file) {
        return std::nullopt;
    }
    try {
        check_format(file->get());
        Archive archive;
        archive.facts = read_facts(file->get());
        archive.space = space_of(hdf5::read_table(file->get(), "genes"));
        archive.individuals = individuals_of(archive.space, hdf5::read_table(file->get(), "individuals"));
        add_curves(hdf5::read_table(file->get(), "curves"), archive.individuals);
        read_places(file->get(), archive);
        return archive;
    } catch (const Error& error) {
        throw FileError(path.string() + ": " + error.what());
    }
}

}  // namespace finch::store
