package olap
