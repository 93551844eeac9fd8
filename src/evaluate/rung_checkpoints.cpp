#include "finch/evaluate/rung_checkpoints.hpp"

#include "finch/base/copy_folder.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/replace.hpp"
#include "finch/config/command.hpp"
#include "finch/evaluate/rung_snapshots.hpp"

#include <fstream>
#include <span>
#include <string>
#include <sys/stat.h>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

/// Returns the first line of `reports`. Individuals of two runs can have the same ids.
std::string heading(std::uint64_t run) {
    return fmt::format("run {:016x}", run);
}

}  // namespace

void RungCheckpoints::keep(const search::Individual& individual, const fs::path& checkpoint, const ReportedCurve& curve,
                           const search::Population& population, std::int64_t parents) const {
    const std::string reports = heading(run_) + "\n" + curve.text();
    replace_folder(directory_.checkpoint_after_epoch(individual.id, individual.epochs), [&](const fs::path& beside) {
        if (::mkdir(beside.c_str(), 0777) != 0) {
            throw_storage("cannot make the folder " + beside.string());
        }
        copy_folder(checkpoint, beside / config::parent_checkpoint);
        std::error_code none;
        if (fs::is_empty(beside / config::parent_checkpoint, none)) {
            throw StorageError(fmt::format("the folder {} is empty", checkpoint.string()));
        }
        replace_file(beside / "reports", {std::as_bytes(std::span(reports))}, {Predecessor::drop});
    });
    for (const search::Id id : not_wanted_at_rung(individual, population, parents)) {
        remove_folder(directory_.checkpoint_after_epoch(id, individual.epochs));
    }
}

bool RungCheckpoints::has_parent_of(const search::Individual& heir) const {
    std::ifstream file(of_parent(heir) / "reports", std::ios::binary);
    std::string line;
    return std::getline(file, line) && line == heading(run_);
}

void RungCheckpoints::copy_parent(const search::Individual& heir, const fs::path& own) const {
    const auto require_parent = [&] {
        if (!has_parent_of(heir)) {
            throw FileError(fmt::format("the copy of the checkpoint of its parent {} after epoch {} is missing",
                                        to_text(heir.inherited_from), heir.inherited_epochs));
        }
    };
    require_parent();
    std::error_code ignored;
    fs::create_directories(own.parent_path(), ignored);
    try {
        replace_folder(own, [&](const fs::path& beside) { copy_folder(of_parent(heir), beside); });
    } catch (const StorageError&) {
        require_parent();  // another leader may have removed it during the copy
        throw;
    }
}

void RungCheckpoints::begin(const search::Individual& heir, ReportedCurve& curve) const {
    const fs::path own = directory_.evaluation_file(heir.id, std::string(config::parent_suffix));
    const bool has_reported = is_there(directory_.evaluation_file(heir.id, "reports"));
    if (!is_there(own) || (!has_reported && has_parent_of(heir))) {
        copy_parent(heir, own);
    }
    curve.inherit(own / "reports");
    if (curve.epochs().empty() || curve.epochs().back().epoch != heir.inherited_epochs) {
        throw FileError(
            fmt::format("{} has other epochs than 1 to {}", (own / "reports").string(), heir.inherited_epochs));
    }
}

}  // namespace finch::evaluate
