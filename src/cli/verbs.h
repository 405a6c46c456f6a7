// One function a verb: declares it, with its options and what runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dial9::cli {

class Arguments;

void add_info(Arguments& arguments);
void add_cat(Arguments& arguments);
void add_diagnose(Arguments& arguments);
void add_recover(Arguments& arguments);
void add_doctor(Arguments& arguments);
void add_serve(Arguments& arguments);
void add_snapshot(Arguments& arguments);
void add_top(Arguments& arguments);
void add_spans(Arguments& arguments);
void add_flame(Arguments& arguments);
void add_heap(Arguments& arguments);
void add_offcpu(Arguments& arguments);

}  // namespace dial9::cli
