"""What Hydra and OmegaConf make of config files and overrides, with the place of every value."""
