// The one place that instantiates Catch2's main: compiling it takes longer than most tests do.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
