#include "finch/process/output.hpp"

#include <doctest/doctest.h>
