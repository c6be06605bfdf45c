"""Documentation: pages, and the module that makes some of them from the code."""
