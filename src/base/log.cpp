#include "finch/base/log.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/terminal.hpp"
#include "finch/base/words.hpp"

#include <cstdio>
#include <memory>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finch {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
        case LogLevel::debug:
            return spdlog::level::debug;
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warning:
            return spdlog::level::warn;
        case LogLevel::error:
            return spdlog::level::err;
    }
    return spdlog::level::info;
}

/// A sink for standard output that clears the live line before it writes a line.
class TerminalSink : public spdlog::sinks::ansicolor_stdout_sink_mt {
public:
    explicit TerminalSink(bool has_colours)
        : spdlog::sinks::ansicolor_stdout_sink_mt(has_colours ? spdlog::color_mode::always
                                                              : spdlog::color_mode::never) {
        set_color(spdlog::level::info, reset);
    }
    void log(const spdlog::details::log_msg& message) override {
        LiveLine::clear();
        spdlog::sinks::ansicolor_stdout_sink_mt::log(message);
    }
};

}  // namespace

void set_up_log(const LogOptions& options, int world_rank, bool is_leader) {
    std::vector<spdlog::sink_ptr> sinks;
    if (options.path.empty() || options.tee) {
        sinks.push_back(std::make_shared<TerminalSink>(terminal().has_colours));
    }
    if (!options.path.empty()) {
        const std::string path = world_rank == 0 ? options.path : options.path + "." + std::to_string(world_rank);
        try {
            sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
        } catch (const spdlog::spdlog_ex& problem) {
            check_storage_of(path);
            throw ConfigError(fmt::format("log.path: {} cannot be written ({})", path, problem.what()));
        }
    }
    auto logger = std::make_shared<spdlog::logger>("finch", sinks.begin(), sinks.end());
    const bool speaks =
        options.ranks == LogRanks::all || world_rank == 0 || (options.ranks == LogRanks::workers && is_leader);
    logger->set_level(speaks ? spdlog_level(options.level) : spdlog::level::warn);
    const std::string from = options.ranks == LogRanks::leader && speaks ? "" : "[" + std::to_string(world_rank) + "] ";
    logger->set_pattern(std::string(is_on_terminal(options) ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S") + " %^%L%$ " + from +
                        "%v");
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
}

bool is_on_terminal(const LogOptions& options) {
    return options.path.empty() && LiveLine::available();
}

std::size_t log_prefix(const LogOptions& options) {
    const std::string_view shown = is_on_terminal(options) ? "10:02:03 I " : "2026-01-02 10:02:03 I ";
    return shown.size() + std::string_view(options.ranks == LogRanks::leader ? "" : "[0] ").size();
}

bool LiveLine::available() noexcept {
    static const bool can_rewrite = terminal().can_rewrite;
    return can_rewrite;
}

void LiveLine::show(const std::string& text) {
    if (available()) {
        const Terminal now = terminal();
        const auto columns = static_cast<std::size_t>(now.columns);
        std::fprintf(stdout, "\r\033[K%s", cut(text, columns - 1, ellipsis_of(now)).c_str());
        std::fflush(stdout);
    }
}

void LiveLine::clear() {
    if (available()) {
        std::fputs("\r\033[K", stdout);
    }
}

void complain(const std::string& text) noexcept {
    std::fputs(fmt::format("finch: {}\n", text).c_str(), stderr);
}

}  // namespace finch
