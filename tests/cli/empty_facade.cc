// Stands in for a facade where only its being preloaded matters.
extern "C" int laneway_empty_facade;
int laneway_empty_facade = 0;
