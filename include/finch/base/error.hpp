#pragma once

#include <stdexcept>
#include <string>

namespace finch {

/// Whatever Finch itself throws. main() prints it with the rank and ends the run.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The user's input is wrong: bad YAML, impossible layout, missing data. Names the key, the line and what is accepted.
/// main() prints it once, from rank 0, and exits with 2.
class ConfigError : public Error {
public:
    using Error::Error;
};

/// A call of a library or of the operating system failed. Names the call, its place and the library's own words.
class ApiError : public Error {
public:
    using Error::Error;
};

/// A file is damaged or not one of ours. Names the file and what is wrong with it.
class FileError : public Error {
public:
    using Error::Error;
};

/// Throws ApiError with `what` (a call or a path) and the text of the current `errno`.
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace finch
