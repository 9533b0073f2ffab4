// What the sanitizers read before main(): tests ask for more memory than there can be and expect to be told so.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizers' names
const char* __asan_default_options();
const char* __asan_default_options() { return "allocator_may_return_null=1"; }
const char* __tsan_default_options();
const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
// NOLINTEND(bugprone-reserved-identifier)
}
