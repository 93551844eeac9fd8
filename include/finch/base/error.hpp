#pragma once

#include <stdexcept>
#include <string>

namespace finch {

/// The base class of Finch's own errors. main() prints the message with the rank and ends the run.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An error in the user's input: bad YAML, an impossible layout, missing data. The message names the key, the line and
/// the accepted values. main() prints it once, from rank 0, and exits with code 2.
class ConfigError : public Error {
public:
    using Error::Error;
};

/// A failed call of a library or of the operating system. The message names the call, its place and the library's error
/// text.
class ApiError : public Error {
public:
    using Error::Error;
};

/// A damaged file, or a file that Finch did not write. The message names the file and the problem.
class FileError : public Error {
public:
    using Error::Error;
};

/// Throws ApiError with `what` (a call or a path) and the text of the current `errno`.
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace finch
