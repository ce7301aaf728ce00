// Events of the grammars: what stops a rank or keeps it busy. Each takes the fields of a matched line; false: not this after all.
#pragma once

#include "model/reported.h"
#include "read/log_grammars.h"

namespace lockstep::log_cause {

bool out_of_memory(const LogFields& fields, ReportedEvent& event);
bool network(const LogFields& fields, ReportedEvent& event);
bool closed(const LogFields& fields, ReportedEvent& event);
bool hardware(const LogFields& fields, ReportedEvent& event);
bool crashed(const LogFields& fields, ReportedEvent& event);
bool library(const LogFields& fields, ReportedEvent& event);
bool environment(const LogFields& fields, ReportedEvent& event);
bool disk(const LogFields& fields, ReportedEvent& event);
bool slow(const LogFields& fields, ReportedEvent& event);
bool killed_for_memory(const LogFields& fields, ReportedEvent& event);
bool lost_device(const LogFields& fields, ReportedEvent& event);
bool async_exception(const LogFields& fields, ReportedEvent& event);
bool task_ended(const LogFields& fields, ReportedEvent& event);
bool ray_worker(const LogFields& fields, ReportedEvent& event);
bool lost_task(const LogFields& fields, ReportedEvent& event);
bool mpirun_signal(const LogFields& fields, ReportedEvent& event);
bool unused_parameters(const LogFields& fields, ReportedEvent& event);
bool frozen_node(const LogFields& fields, ReportedEvent& event);
bool signalled(const LogFields& fields, ReportedEvent& event);
bool host_work(const LogFields& fields, ReportedEvent& event);
bool progress_bar(const LogFields& fields, ReportedEvent& event);
bool exit_code(const LogFields& fields, ReportedEvent& event);
bool exception(const LogFields& fields, ReportedEvent& event);
bool xid(const LogFields& fields, ReportedEvent& event);

}  // namespace lockstep::log_cause
