// Everything of the C++ API.
#pragma once

#include "sluice/calibration.hpp"
#include "sluice/device.hpp"
#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan.hpp"
#include "sluice/plan_cache.hpp"
#include "sluice/problem.hpp"
#include "sluice/quantize.hpp"
#include "sluice/run.hpp"
#include "sluice/scaling.hpp"
#include "sluice/schedule.hpp"
#include "sluice/simulate.hpp"
#include "sluice/types.hpp"
#include "sluice/verify.hpp"
#include "sluice/version.hpp"
