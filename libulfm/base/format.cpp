// The functions of {fmt}, compiled once: every other unit only declares them. With FMT_HEADER_ONLY each unit compiled
// them again, which took half of the project's compile time. They are compiled in because a shared library would have
// to be found and relocated in every process of a job.
#include <fmt/format-inl.h>

#include <locale>

FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float value) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double value) noexcept;
template locale_ref::locale_ref(const std::locale& locale);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref locale);
template char decimal_point_impl(locale_ref locale);
template void buffer<char>::append(const char* begin, const char* end);
template void vformat_to(buffer<char>& to, string_view format, basic_format_args<FMT_BUFFER_CONTEXT(char)> arguments,
                         locale_ref locale);

}  // namespace detail
FMT_END_NAMESPACE
