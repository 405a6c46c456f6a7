// Recovery of dead runs, for the command line. All of it is recorder/recovery.h; this header is the
// face of it that programs above the recorder include.
// Spec: docs/spec/recorder.md, "Recovery".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recorder/recovery.h"
