#include "finch/run/profile.hpp"

#include "finch/base/files.hpp"
#include "finch/base/log.hpp"
#include "finch/base/replace.hpp"

#include <span>
#include <string>

namespace finch::run {

std::optional<train::Profile> begin_profile(const RunOptions& options) {
    return options.profile ? std::make_optional<train::Profile>() : std::nullopt;
}

void tell_profile(const Run& run, evaluate::Slots& slots) {
    const evaluate::Order order{.kind = evaluate::Order::Kind::report};
    evaluate::send_order(run.group, order);
    static_cast<void>(slots.obey(order));
    const train::ProfileReport& report = slots.report();
    if (report.all.training_samples == 0) {
        spdlog::info("--profile: nothing was trained in this start");
        return;
    }
    for (const std::string& line : train::table_text(report)) {
        spdlog::info("{}", line);
    }
    const std::string json = train::json_text(report);
    try {
        replace_file(run.directory.profile(), {std::as_bytes(std::span(json))}, Predecessor::drop);
    } catch (const StorageError& error) {
        spdlog::warn("--profile: {}", error.what());
    }
}

}  // namespace finch::run
