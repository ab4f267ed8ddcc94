#ifndef WORKBENCH_REWRITING_PLAN_STAGE_PLAN_H_
#define WORKBENCH_REWRITING_PLAN_STAGE_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace workbench {

// Of the custom optimizer whose parameters are a plan.
inline constexpr char kPlanName[] = "WorkbenchStagePlan";

// One copy of the moved nodes, each under the name "<prefix>/<name>". The copy reads tensor to[i]
// where the moved nodes read from[i].
struct CopySet {
  std::string prefix;
  std::vector<std::string> from;
  std::vector<std::string> to;
};

// Updates of what a stage reads, which trail the step: they are done in the run that put the item.
struct PlannedTrail {
  std::vector<std::string> updates;    // Among the moved ones.
  std::vector<std::string> moved;      // What is copied, in topological order.
  std::vector<std::string> moved_ops;  // Their types in the user's graph.
  CopySet copy;  // From what the step computes, to what is awaited.
  std::vector<std::string> waits;      // What the return waits for, in the place of the moved nodes.
  std::vector<std::string> variables;  // What the updates write.
  std::string begin, await, returns, settle;  // The stage's own nodes.
};

// What is done to a graph so that one stage of it runs ahead.
struct PlannedStage {
  std::string name;
  std::vector<std::string> moved;      // The source first; topological order.
  std::vector<std::string> moved_ops;  // Their types in the user's graph.
  std::vector<std::string> carried;    // All their outputs, in this order, make the record.
  std::string take;                    // Its outputs are the record.
  std::vector<CopySet> copies;
  tensorflow::GraphDef nodes;  // Added to the graph, or put in the place of nodes of that name.
  std::string device;          // Of every copy; empty leaves each its own.
  std::optional<PlannedTrail> trail;
};

// Nodes of the user's graph that have effects, for which one node of a plan stands.
struct PlannedGroup {
  std::string op;
  std::vector<std::string> members;
};

// What is done to a graph, before any stage, so that few ops do what many did.
struct PlannedFusion {
  tensorflow::GraphDef added;
  tensorflow::GraphDef replaced;  // Each in the place of the node of that name.
  // The nodes that these stand for, as the plan was made for them, and functions likewise.
  tensorflow::GraphDef region;
  tensorflow::GraphDef sources;   // What those read from outside: op and attributes alone count.
  std::vector<std::string> choices;  // Replaced nodes in whose place a run may need the user's.
  std::vector<std::string> inside;   // Nodes that are computed within an op of the plan.
  std::vector<std::string> reads;    // Of these the ones that read variables.
  std::vector<std::string> writers;  // Nodes that may change variables of the region.
  std::vector<PlannedGroup> groups;
};

struct StagePlan {
  PlannedFusion fusion;
  std::vector<PlannedStage> stages;  // Applied in this order.
};

// Reads the parameters of a custom optimizer. The status of a malformed one names the stage and the
// parameter, and says what it is and what it should be.
absl::Status ParseStagePlan(const tensorflow::RewriterConfig::CustomGraphOptimizer& config,
                            StagePlan* plan);

}  // namespace workbench

#endif  // WORKBENCH_REWRITING_PLAN_STAGE_PLAN_H_
