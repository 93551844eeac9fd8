#pragma once

#include <string>

namespace finch {

/// Returns the version of the source code of this program: 0.2.0 at the tag v0.2.0, 0.2.0-14-g5be1c0ffee12 fourteen
/// commits later, 0.1.0-g5be1c0ffee12 without an earlier tag. A suffix -dirty means that files differ from the commit.
/// `--reuse` treats builds with the same version as the same program. Files store the version as `program_version`.
[[nodiscard]] std::string program_version();

}  // namespace finch
