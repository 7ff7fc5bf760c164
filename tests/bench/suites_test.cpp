#include "bench/suites.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::bench {
namespace {

std::vector<Shape> suite(const std::string& name) {
  Result<std::vector<Shape>> shapes = find_shapes(name);
  EXPECT_TRUE(shapes.ok()) << shapes.error().message;
  return shapes ? *shapes : std::vector<Shape>{};
}

Result<std::vector<Shape>> read(const std::string& text) {
  std::istringstream lines(text);
  return read_shapes(lines, "file");
}

TEST(Suites, HoldTheShapesOfThePublishedMeasurements) {
  EXPECT_EQ(suite("square").size(), 6u);
  EXPECT_EQ(suite("square").front(), (Shape{"square", 512, 512, 512}));
  EXPECT_EQ(suite("square").back(), (Shape{"square", 16384, 16384, 16384}));
  EXPECT_EQ(suite("wave").size(), 16u);
  EXPECT_EQ(suite("wave").front(), (Shape{"wave", 1024, 256, 4096}));
  EXPECT_EQ(suite("wave")[1], (Shape{"wave", 1024, 768, 4096}));
  EXPECT_EQ(suite("wave").back(), (Shape{"wave", 1024, 7936, 4096}));
  EXPECT_EQ(suite("splitk").size(), 8u);
  EXPECT_EQ(suite("splitk").back(), (Shape{"splitk", 1024, 128, 65536}));
  EXPECT_EQ(suite("llm").size(), 112u);
  EXPECT_EQ(suite("llm").front(), (Shape{"llm", 1, 6144, 4096}));
  EXPECT_EQ(suite("llm").back(), (Shape{"llm", 8192, 7168, 2048}));
  EXPECT_EQ(suite("all").size(), 6u + 16u + 8u + 112u);
}

TEST(Suites, ThatOfFp8IsOfE4m3AndNoPartOfAll) {
  const std::vector<Shape> shapes = suite("fp8");
  EXPECT_EQ(shapes.size(), 4u * 6);
  EXPECT_EQ(shapes.front(), (Shape{"fp8", 64, 2112, 7168, DataType::e4m3}));
  EXPECT_EQ(shapes.back(), (Shape{"fp8", 4096, 7168, 2048, DataType::e4m3}));
  for (const Shape& shape : shapes) EXPECT_EQ(shape.type, DataType::e4m3);
  for (const Shape& shape : suite("all")) EXPECT_EQ(shape.type, DataType::bf16);
  EXPECT_EQ(suite("wave,fp8").size(), 16u + 24u);
}

TEST(Suites, ThatOfW4a16HasWeightsOf4BitsAndIsNoPartOfAll) {
  const std::vector<Shape> shapes = suite("w4a16");
  EXPECT_EQ(shapes.size(), 8u * 7);
  EXPECT_EQ(shapes.front(), (Shape{"w4a16", 1, 4096, 4096, DataType::int4}));
  EXPECT_EQ(shapes.back(), (Shape{"w4a16", 1024, 57344, 8192, DataType::int4}));
  for (const Shape& shape : shapes) EXPECT_TRUE(has_w4(shape));
  for (const Shape& shape : suite("all")) EXPECT_FALSE(has_w4(shape));
}

TEST(Suites, ThatOfW4a8IsTheSameBesideE4m3) {
  std::vector<Shape> shapes = suite("w4a8");
  ASSERT_EQ(shapes.size(), suite("w4a16").size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_TRUE(has_w4(shapes[i]));
    EXPECT_EQ(type_of_a(shapes[i]), DataType::e4m3);
    EXPECT_LT(bytes(shapes[i]), bytes(suite("w4a16")[i]));
    shapes[i].activations = DataType::bf16;
    shapes[i].suite = "w4a16";
  }
  EXPECT_EQ(shapes, suite("w4a16"));
  EXPECT_EQ(suite("w4a8,w4a16").size(), 2 * shapes.size());
}

TEST(Suites, NoShapeComesTwiceInOne) {
  std::vector<std::string> names;
  for (const Shape& shape : suite("all")) names.push_back(shape.suite + to_string(shape));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Suites, AnUnknownNameSaysWhatIsKnown) {
  const Result<std::vector<Shape>> shapes = find_shapes("no-such-suite");
  ASSERT_FALSE(shapes.ok());
  EXPECT_EQ(shapes.error().code, ErrorCode::not_found);
  EXPECT_NE(shapes.error().message.find("splitk"), std::string::npos);
}

TEST(Suites, AListIsItsPartsInTurn) {
  const std::vector<Shape> both = suite("wave,splitk");
  ASSERT_EQ(both.size(), 24u);
  EXPECT_EQ(both.front(), suite("wave").front());
  EXPECT_EQ(both.back(), suite("splitk").back());
  EXPECT_EQ(suite("all,llm,wave").size(), suite("all").size()) << "what is there already does not come again";
  for (const char* wrong : {"wave,", ",wave", "", "wave,nonesuch"}) EXPECT_FALSE(find_shapes(wrong).ok()) << wrong;
}

TEST(Suites, RandomShapesComeFromTheirSeedAlone) {
  const std::vector<Shape> shapes = *find_shapes("random", 1);
  ASSERT_EQ(shapes.size(), 100u);
  EXPECT_EQ(shapes, *find_shapes("random", 1));
  EXPECT_EQ(shapes, suite("random")) << "1 is the seed unless told";
  EXPECT_NE(shapes, *find_shapes("random", 2));
  EXPECT_EQ(shapes.front(), (Shape{"random", 3, 1072, 568})) << "measurements on record name the seed: its shapes must not change";
  int few_rows = 0, eights = 0;
  for (const Shape& shape : shapes) {
    EXPECT_TRUE(shape.m >= 1 && shape.m <= 8192 && shape.n >= 64 && shape.n <= 32768 && shape.k >= 64 && shape.k <= 32768)
        << to_string(shape);
    EXPECT_EQ(shape.n % 8 + shape.k % 8, 0) << to_string(shape);
    EXPECT_LE(shape.n * shape.k, std::int64_t{1} << 31);
    few_rows += shape.m <= 64 ? 1 : 0;
    eights += shape.n % 64 != 0 ? 1 : 0;
  }
  EXPECT_TRUE(few_rows > 25 && few_rows < 65) << few_rows << ": log-uniform, 6 of 13 doublings";
  EXPECT_TRUE(eights > 5 && eights < 45) << eights;
}

TEST(ShapeFile, ReadsCsvWithHeaderCommentsAndSpaces) {
  const Result<std::vector<Shape>> shapes = read("m,n,k\n# a comment\n\n1,2,8\n 3 , 4 , 16 \r\n");
  ASSERT_TRUE(shapes.ok()) << shapes.error().message;
  EXPECT_EQ(*shapes, (std::vector<Shape>{{"file", 1, 2, 8}, {"file", 3, 4, 16}}));
}

TEST(ShapeFile, ReadsJsonLines) {
  const Result<std::vector<Shape>> shapes = read("{\"m\": 5, \"k\": 64, \"n\": 6}\n{\"m\":1,\"n\":1,\"k\":8,\"note\":\"more\"}\n");
  ASSERT_TRUE(shapes.ok()) << shapes.error().message;
  EXPECT_EQ(*shapes, (std::vector<Shape>{{"file", 5, 6, 64}, {"file", 1, 1, 8}}));
}

TEST(ShapeFile, NamesTheLineThatIsWrong) {
  for (const char* text :
       {"1,2,8\n1,2\n", "1,2,8\n1,2,8,9\n", "1,2,8\nm,n,k\n", "1,2,8\n{\"m\": 1, \"n\": 2}\n", "1,2,8\n{\"m\": 1.5, \"n\": 2, \"k\": 8}\n",
        "1,2,8\n99999999999999999999,2,8\n", "1,2,8\n{\n", "1,2,8\n0,2,8\n", "1,2,8\n1,-2,8\n", "1,2,8\n1,2,9\n"}) {
    const Result<std::vector<Shape>> shapes = read(text);
    ASSERT_FALSE(shapes.ok()) << text;
    EXPECT_EQ(shapes.error().message.rfind("file:2:", 0), 0u) << shapes.error().message;
  }
}

TEST(ShapeFile, WithoutShapesIsAnError) {
  EXPECT_FALSE(read("").ok());
  EXPECT_FALSE(read("m,n,k\n").ok());
}

TEST(ShapeFile, IsFoundByItsPath) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "sluice_bench_shapes.csv";
  std::ofstream(path) << "32,64,128\n";
  EXPECT_EQ(suite(path.string()), (std::vector<Shape>{{"sluice_bench_shapes.csv", 32, 64, 128}}));
  std::filesystem::remove(path);
}

TEST(Filter, KeepsARangeOfMAndAText) {
  BenchOptions options;
  options.m_min = 64;
  options.m_max = 512;
  EXPECT_EQ(filter_shapes(suite("llm"), options).size(), 16u * 3);
  options.shape_filter = "x4096x7168";
  EXPECT_EQ(filter_shapes(suite("llm"), options),
            (std::vector<Shape>{{"llm", 64, 4096, 7168}, {"llm", 128, 4096, 7168}, {"llm", 512, 4096, 7168}}));
}

TEST(Filter, GivesTheTypeThatIsAskedFor) {
  BenchOptions options;
  EXPECT_EQ(filter_shapes({{"wave", 1, 2, 8}, {"fp8", 4, 16, 16, DataType::e4m3}}, options)[1].type, DataType::e4m3);
  options.type = DataType::e4m3;
  for (const Shape& shape : filter_shapes(suite("wave"), options)) EXPECT_EQ(shape.type, DataType::e4m3);
  options.type = DataType::bf16;
  for (const Shape& shape : filter_shapes(suite("fp8"), options)) EXPECT_EQ(shape.type, DataType::bf16);
}

TEST(Problems, AreOfBf16WithoutScales) {
  BenchOptions options;
  options.constant_b = true;
  const GemmProblem p = problem_of({"", 16, 4096, 7168}, options);
  EXPECT_EQ(p, (GemmProblem{.m = 16, .n = 4096, .k = 7168, .constant_b = true}));
}

TEST(Problems, OfFp8HaveScalesWhereCublasLtLooksForThem) {
  const Result<GemmProblem> valid = validate(problem_of({"", 100, 2112, 7000, DataType::e4m3}, {}));
  ASSERT_TRUE(valid.ok()) << valid.error().message;
  EXPECT_TRUE(valid->type_a == DataType::e4m3 && valid->type_b == DataType::e4m3 && valid->type_d == DataType::bf16);
  EXPECT_TRUE(valid->scaling_a == Scaling::per_vector_128 && valid->scaling_b == Scaling::per_block_128);
  EXPECT_TRUE(valid->scale_layout_a == Layout::column_major && valid->ld_scale_a == 100) << "m contiguous";
  EXPECT_TRUE(valid->scale_layout_b == Layout::row_major && valid->ld_scale_b == 56) << "K contiguous, 55 blocks of it, padded to 4";
  EXPECT_EQ(valid->lda, 7008) << "rows of whole 16 bytes";
  for (const Shape& shape : suite("fp8")) EXPECT_TRUE(validate(problem_of(shape, {})).ok()) << to_string(shape);
  for (Shape shape : suite("random")) {
    shape.type = DataType::e4m3;
    EXPECT_TRUE(validate(problem_of(shape, {})).ok()) << to_string(shape);
  }
}

TEST(Problems, OfInt4HaveBf16ActivationsAndTheRivalTheSameOnesUnpacked) {
  const Result<GemmProblem> valid = validate(problem_of({"", 16, 4096, 7168, DataType::int4}, {}));
  ASSERT_TRUE(valid.ok()) << valid.error().message;
  EXPECT_EQ(valid->type_a, DataType::bf16);
  EXPECT_EQ(valid->type_b, DataType::int4);
  EXPECT_EQ(valid->w4, (W4Format{.group_size = 128, .zero_points = false}));
  EXPECT_EQ(with_dense_weights(*valid), *validate({.m = 16, .n = 4096, .k = 7168})) << "nothing is left of the packing";
  EXPECT_EQ(with_dense_weights(Shape{"s", 16, 4096, 7168, DataType::int4}), (Shape{"s", 16, 4096, 7168}));
  const GemmProblem fp8 = *validate(problem_of({"", 64, 4096, 7168, DataType::e4m3}, {}));
  EXPECT_EQ(with_dense_weights(fp8), fp8);
  for (const Shape& shape : suite("w4a16,w4a8")) EXPECT_TRUE(validate(problem_of(shape, {})).ok()) << to_string(shape);
  const GemmProblem of_bytes = *validate(problem_of(suite("w4a8").front(), {}));
  EXPECT_EQ(of_bytes.type_a, DataType::e4m3);
  EXPECT_EQ(with_dense_weights(of_bytes), *validate({.m = 1, .n = 4096, .k = 4096, .type_a = DataType::e4m3, .type_b = DataType::e4m3}));
}

TEST(Shapes, AreClassedByRowsAndByWhatBoundsThem) {
  EXPECT_EQ(m_class(1), "m<=128");
  EXPECT_EQ(m_class(128), "m<=128");
  EXPECT_EQ(m_class(129), "128<m<2048");
  EXPECT_EQ(m_class(2048), "m>=2048");
  EXPECT_EQ(flops({"", 2, 3, 5}), 60);
  EXPECT_EQ(bytes({"", 2, 3, 5}), 2 * (10 + 15 + 6));
  EXPECT_EQ(bytes({"", 2, 130, 300, DataType::e4m3}), 2 * 300 + 130 * 300 + 2 * 2 * 130 + 4 * (2 * 3 + 2 * 3));
  EXPECT_EQ(bytes({"", 2, 256, 512, DataType::int4}), 2 * 2 * 512 + 256 * 512 / 2 + 2 * 256 * 4 + 2 * 2 * 256) << "4 groups a column";
  EXPECT_TRUE(memory_bound({"", 64, 4096, 4096}));
  EXPECT_EQ(memory_bound({"", 128, 4096, 7168, DataType::e4m3}), memory_bound({"", 128, 4096, 7168})) << "half the bytes, twice the rate";
  EXPECT_FALSE(memory_bound({"", 2048, 4096, 4096}));
}

}  // namespace
}  // namespace sluice::bench
