#pragma once

#include <string>

namespace finch {

/// Version of the source that this program was built from: 0.2.0 at the tag v0.2.0; 0.2.0-14-g5be1c0ffee12 fourteen
/// commits later; 0.1.0-g5be1c0ffee12 without an earlier tag; with -dirty if files differ from the commit. Builds of
/// one version are the same program to `--reuse`. Files keep it as `program_version`.
[[nodiscard]] std::string program_version();

}  // namespace finch
