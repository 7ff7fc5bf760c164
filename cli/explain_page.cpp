#include "explain_page.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "pages/page.hpp"
#include "pages/svg.hpp"

namespace sluice::cli {
namespace {

struct Part {
  const char* name;
  std::string_view colour;
  double PredictedTime::*us;
};
constexpr std::array<Part, 9> kParts = {{{"launch", pages::kPaleGrey, &PredictedTime::launch_us},
                                         {"matrix", pages::kPaleBlue, &PredictedTime::matrix_us},
                                         {"HBM", pages::kPaleGreen, &PredictedTime::hbm_us},
                                         {"L2", pages::kPalePurple, &PredictedTime::l2_us},
                                         {"ramp", pages::kPaleYellow, &PredictedTime::ramp_us},
                                         {"reduction", pages::kPaleRed, &PredictedTime::reduction_us},
                                         {"epilogue", pages::kPaleOrange, &PredictedTime::exposed_epilogue_us},
                                         {"learnt", pages::kPaleGrey, &PredictedTime::learnt_us},
                                         {"power", pages::kPaleGrey, &PredictedTime::power_us}}};

std::string row(int rank, const Candidate& candidate, double largest_us, const std::string& why) {
  const PredictedTime& t = candidate.predicted;
  const bool chosen = candidate.verdict == CandidateVerdict::chosen;
  const std::string pieces = candidate.scheduler.kind == SchedulerKind::split_k
                                 ? fmt::format(" {}, {}", candidate.scheduler.splits, to_string(candidate.scheduler.reduction))
                                 : std::string();
  std::string html = fmt::format(
      "<tr{}><td>{}</td><td>{}</td><td>{}{}</td><td class=\"number\">{:.2f}</td><td class=\"number\">{:.0f}%</td><td "
      "class=\"number\">{:.0f}%</td>",
      chosen ? " class=\"chosen\"" : "", rank, name(candidate.kernel), to_string(candidate.scheduler.kind), pieces, t.waves,
      100 * t.busy_share, 100 * t.useful_share);
  html += pages::bar_cell(t.total_us, largest_us, fmt::format("{:.2f}", t.total_us), pages::kPaleBlue);
  for (const Part& part : kParts) html += pages::bar_cell(t.*part.us, largest_us, fmt::format("{:.2f}", t.*part.us), part.colour);
  return html + fmt::format("<td class=\"wide\">{}</td></tr>\n", pages::escape(why));
}

}  // namespace

std::string explain_page(const Plan& plan, int most) {
  std::vector<const Candidate*> able;
  double largest_us = 0;
  for (const Candidate& candidate : plan.candidates)
    if (candidate.verdict == CandidateVerdict::chosen || candidate.verdict == CandidateVerdict::slower) able.push_back(&candidate);
  const std::size_t shown = std::min(able.size(), static_cast<std::size_t>(std::max(most, 1)));
  for (std::size_t i = 0; i < shown; ++i) largest_us = std::max(largest_us, able[i]->predicted.total_us);
  const std::string words = explain(plan, most);
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"faint\">candidates on {}, all times predicted, in microseconds</p>\n",
                                 pages::escape(describe(plan.problem)), pages::escape(plan.device.name));
  body += "<pre>" + pages::escape(words.substr(0, words.find("\n\n"))) + "</pre>\n";
  body +=
      "<p>total = launch + matrix, HBM and L2 overlapping + ramp + reduction + epilogue + learnt</p>\n<table "
      "id=\"candidates\">\n<tr><th></th><th>kernel</th>"
      "<th>schedule</th><th>waves</th><th>busy</th><th>useful</th><th>total</th>";
  for (const Part& part : kParts) body += fmt::format("<th>{}</th>", part.name);
  body += "<th>why</th></tr>\n";
  for (std::size_t i = 0; i < shown; ++i) body += row(static_cast<int>(i) + 1, *able[i], largest_us, why(plan, *able[i]));
  body += "</table>\n";
  if (shown < able.size())
    body +=
        fmt::format("<p class=\"faint\">and {} slower ones, up to {:.2f} us</p>\n", able.size() - shown, able.back()->predicted.total_us);
  return pages::to_html({.title = "sluice explain: " + describe(plan.problem), .body = body, .data = {}, .script = {}, .wide = true});
}

}  // namespace sluice::cli
