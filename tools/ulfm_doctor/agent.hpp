// What runs on every host while the doctor looks at it: it answers questions, a line of JSON each, on its standard
// input and output. An answer has the "id" of its question.
#pragma once

#include <string_view>

namespace doctor {

/// In front of every answer: a shell may print lines of its own when somebody logs in.
inline constexpr std::string_view kMark = "ulfm_doctor: ";

/// What is wrong with an agent whose answers are not as ours.
inline constexpr const char* kOtherVersion = "another version of ulfm_doctor answers";

/// Until standard input ends. Exit status.
int run_agent();

}  // namespace doctor
