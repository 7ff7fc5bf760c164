// What grouped problems need of a launch.
#pragma once

#include "sluice/problem.hpp"
#include "sluice/run.hpp"

#include "launch/bind.hpp"

namespace sluice {

// Whether the copy engine can store D: from group to group it must be a whole number of rows, and not more than it can count.
bool can_clip_rows(const GemmProblem& problem);

// D for boxes that must end with their group (Grouping), wherever in a tile it ends. The second and the third direction both are rows, one
// row apart. The second is as long as a box is high, so that a box that begins c rows into it has its last c rows clipped; the third puts
// it where it belongs. To get there from any c it begins the height of a box before D.
GlobalTensor clipping_rows(const GemmProblem& problem, GlobalTensor d, int box_rows);
// An operand, likewise: groups along K have K in the direction of its rows.
GlobalTensor clipping_k(const GemmProblem& problem, GlobalTensor operand, int box_rows);

void bind_groups(const GemmProblem& problem, const GemmArguments& arguments, GemmParams& params);

}  // namespace sluice
