#ifndef WORKBENCH_VARIABLE_VARIABLE_RULES_H_
#define WORKBENCH_VARIABLE_VARIABLE_RULES_H_

// What rules read from the scalars that ops of an EmbeddingVariable are given, in their order.

#include "optimizer/update_rules.h"

namespace workbench {

inline void Take(const float* in, GradientDescentRule* rule) { rule->learning_rate = in[0]; }
inline void Take(const float* in, AdagradRule* rule) { rule->learning_rate = in[0]; }
inline void Take(const float* in, AdamRule* rule) {
  rule->beta1_power = in[0];
  rule->beta2_power = in[1];
  rule->learning_rate = in[2];
  rule->beta1 = in[3];
  rule->beta2 = in[4];
  rule->epsilon = in[5];
  rule->share1 = 1 - rule->beta1;
  rule->share2 = 1 - rule->beta2;
}
inline void Take(const float* in, FtrlRule* rule) {
  rule->learning_rate = in[0];
  rule->l1 = in[1];
  rule->l2 = in[2];
  rule->l2_shrinkage = in[3];
  rule->learning_rate_power = in[4];
}

}  // namespace workbench

#endif  // WORKBENCH_VARIABLE_VARIABLE_RULES_H_
