// The kernel of DecodeCsv: ranges of records on the intra-op threads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/numbers.h"
#include "dense/text/csv_record.h"
#include "threading/first_error.h"
#include "threading/intra_op_threads.h"

namespace workbench {
namespace {

using tensorflow::DataType;
using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::tstring;

// Nanoseconds that a field takes.
constexpr int64_t kCostOfField = 15;

bool ReadNumber(std::string_view field, float* value) {
  return ReadShortNumber(field, value) || tensorflow::strings::safe_strtof(field, value);
}
bool ReadNumber(std::string_view field, double* value) {
  return ReadShortNumber(field, value) || tensorflow::strings::safe_strtod(field, value);
}
bool ReadNumber(std::string_view field, int32_t* value) {
  return ReadShortNumber(field, value) || tensorflow::strings::safe_strto32(field, value);
}
bool ReadNumber(std::string_view field, int64_t* value) {
  return ReadShortNumber(field, value) || tensorflow::strings::safe_strto64(field, value);
}

// One column: what a field of it becomes.
class Column {
 public:
  Column(DataType type, const Tensor& if_empty, Tensor* to)
      : type_(type), if_empty_(if_empty), to_(to->data()) {}

  bool IsRequired() const { return if_empty_.NumElements() == 0; }

  void WriteDefault(int64_t i) const {
    switch (type_) {
      case tensorflow::DT_FLOAT:
        return Write<float>(i);
      case tensorflow::DT_DOUBLE:
        return Write<double>(i);
      case tensorflow::DT_INT32:
        return Write<int32_t>(i);
      case tensorflow::DT_INT64:
        return Write<int64_t>(i);
      default:
        return Write<tstring>(i);
    }
  }

  // False where the field is no number of the column's type.
  bool Read(std::string_view field, int64_t i) const {
    switch (type_) {
      case tensorflow::DT_FLOAT:
        return ReadNumber(field, At<float>(i));
      case tensorflow::DT_DOUBLE:
        return ReadNumber(field, At<double>(i));
      case tensorflow::DT_INT32:
        return ReadNumber(field, At<int32_t>(i));
      case tensorflow::DT_INT64:
        return ReadNumber(field, At<int64_t>(i));
      default:
        At<tstring>(i)->assign(field.data(), field.size());
        return true;
    }
  }

 private:
  template <typename T>
  T* At(int64_t i) const {
    return static_cast<T*>(to_) + i;
  }
  template <typename T>
  void Write(int64_t i) const {
    *At<T>(i) = if_empty_.flat<T>()(0);
  }

  const DataType type_;
  const Tensor& if_empty_;
  void* const to_;
};

class DecodeCsvOp : public OpKernel {
 public:
  explicit DecodeCsvOp(OpKernelConstruction* c) : OpKernel(c) {
    std::string delimiter;
    OP_REQUIRES_OK(c, c->GetAttr("OUT_TYPE", &types_));
    OP_REQUIRES_OK(c, c->GetAttr("field_delim", &delimiter));
    OP_REQUIRES_OK(c, c->GetAttr("use_quote_delim", &rules_.quotes));
    OP_REQUIRES_OK(c, c->GetAttr("na_value", &na_value_));
    OP_REQUIRES(c, delimiter.size() == 1,
                absl::InvalidArgumentError("field_delim should be only 1 char"));
    rules_.delimiter = delimiter[0];
  }

  void Compute(OpKernelContext* c) override {
    const Tensor* records = nullptr;
    OpInputList defaults;
    OP_REQUIRES_OK(c, c->input("records", &records));
    OP_REQUIRES_OK(c, c->input_list("record_defaults", &defaults));
    std::vector<Column> columns;
    for (int f = 0; f < defaults.size(); ++f) {
      OP_REQUIRES(c, defaults[f].dims() <= 1,
                  absl::InvalidArgumentError("Each record default should be at most rank 1"));
      OP_REQUIRES(c, defaults[f].NumElements() < 2,
                  absl::InvalidArgumentError(absl::StrCat(
                      "There should only be 1 default per field but field ", f, " has ",
                      defaults[f].NumElements())));
      Tensor* to = nullptr;
      OP_REQUIRES_OK(c, c->allocate_output(f, records->shape(), &to));
      columns.emplace_back(types_[f], defaults[f], to);
    }
    const auto lines = records->flat<tstring>();
    FirstError first;
    const int64_t cost = lines.size() * columns.size() * kCostOfField;
    ByCost(c, lines.size(), cost, [&](int64_t begin, int64_t end) {
      CsvRecord record(rules_);
      for (int64_t i = begin; i < end; ++i) {
        absl::Status read = Read(lines(i), i, columns, &record);
        if (!read.ok()) return first.Found(i, std::move(read));
      }
    });
    OP_REQUIRES_OK(c, first.status());
  }

 private:
  absl::Status Read(std::string_view line, int64_t i, const std::vector<Column>& columns,
                    CsvRecord* record) const {
    if (const char* wrong = record->Split(line)) return absl::InvalidArgumentError(wrong);
    const std::vector<std::string_view>& fields = record->fields();
    if (fields.size() != columns.size()) {
      return absl::InvalidArgumentError(absl::StrCat("Expect ", columns.size(), " fields but have ",
                                                     fields.size(), " in record ", i));
    }
    for (size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].empty() || fields[f] == na_value_) {
        if (columns[f].IsRequired()) {
          return absl::InvalidArgumentError(
              absl::StrCat("Field ", f, " is required but missing in record ", i, "!"));
        }
        columns[f].WriteDefault(i);
      } else if (!columns[f].Read(fields[f], i)) {
        return absl::InvalidArgumentError(
            absl::StrCat("Field ", f, " in record ", i, " is not a valid ",
                         tensorflow::DataTypeString(types_[f]), ": ", fields[f]));
      }
    }
    return absl::OkStatus();
  }

  std::vector<DataType> types_;
  CsvRules rules_;
  std::string na_value_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchDecodeCsv").Device(tensorflow::DEVICE_CPU), DecodeCsvOp);

}  // namespace
}  // namespace workbench
