#include "finch/base/log.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <string>
#include <string_view>
#include <unistd.h>
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

/// Returns true if the output of this rank reaches a terminal. Open MPI's mpirun gives every rank a pseudo-terminal and
/// forwards the rank's output, so this function checks the standard output of mpirun.
bool launcher_has_terminal() {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
        return true;
    }
    std::array<char, 64> target{};
    const std::string link = "/proc/" + std::to_string(::getppid()) + "/fd/1";
    const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
    return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with("/dev/");
}

/// A sink for standard output that clears the live line before it writes a line.
class TerminalSink : public spdlog::sinks::stdout_sink_mt {
public:
    void log(const spdlog::details::log_msg& message) override {
        LiveLine::clear();
        spdlog::sinks::stdout_sink_mt::log(message);
    }
};

}  // namespace

void set_up_log(const LogOptions& options, int world_rank, bool is_leader) {
    std::vector<spdlog::sink_ptr> sinks;
    if (options.path.empty() || options.tee) {
        sinks.push_back(std::make_shared<TerminalSink>());
    }
    if (!options.path.empty()) {
        const std::string path = world_rank == 0 ? options.path : options.path + "." + std::to_string(world_rank);
        sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    }
    auto logger = std::make_shared<spdlog::logger>("finch", sinks.begin(), sinks.end());
    const bool speaks =
        options.ranks == LogRanks::all || world_rank == 0 || (options.ranks == LogRanks::workers && is_leader);
    logger->set_level(speaks ? spdlog_level(options.level) : spdlog::level::warn);
    logger->set_pattern(options.ranks == LogRanks::leader && speaks
                            ? "%Y-%m-%d %H:%M:%S %L %v"
                            : "%Y-%m-%d %H:%M:%S %L [" + std::to_string(world_rank) + "] %v");
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
}

bool LiveLine::available() noexcept {
    static const bool terminal = ::isatty(STDOUT_FILENO) == 1 && launcher_has_terminal();
    return terminal;
}

void LiveLine::show(const std::string& text) {
    if (available()) {
        std::fprintf(stdout, "\r\033[K%s", text.c_str());
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
